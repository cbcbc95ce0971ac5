package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// passed names the variables that commands get of the server's own environment. Any other variable may be a secret: a
// host starts its servers with the keys of its user.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*_HOME",
}

// environment returns the environment of commands: the variables of own that passed or -env names, and the variables
// that -env sets. It returns an error if a value of -env is invalid.
func environment(own, add []string) (env []string, err error) {
	patterns, set := slices.Clone(passed), map[string]string{}
	for _, a := range add {
		name, value, sets := strings.Cut(a, "=")
		if _, bad := path.Match(name, ""); name == "" || bad != nil && !sets {
			return nil, fmt.Errorf("%q: want NAME, NAME=VALUE or a pattern", a)
		}
		if sets {
			set[name] = value
		} else {
			patterns = append(patterns, name)
		}
	}
	for _, variable := range own {
		name, _, _ := strings.Cut(variable, "=")
		if _, sets := set[name]; !sets && slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
			env = append(env, variable)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, nil
}
