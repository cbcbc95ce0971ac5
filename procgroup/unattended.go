package procgroup

import (
	"os/exec"
	"slices"
	"strings"
)

// unattended lists the variables that keep common programs from asking questions. The package documentation says what
// each variable does.
var unattended = []string{
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=true",
	"GIT_EDITOR=true",
	"GIT_SEQUENCE_EDITOR=true",
	"EDITOR=true",
	"VISUAL=true",
	"SSH_ASKPASS=false",
	"SSH_ASKPASS_REQUIRE=force",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=cat",
	"DEBIAN_FRONTEND=noninteractive",
	"npm_config_yes=true",
	"TERM=dumb",
}

// setUnattended adds to cmd.Env the variables of unattended that the environment of cmd does not set.
func setUnattended(cmd *exec.Cmd) {
	env := cmd.Environ()
	for _, v := range unattended {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(env, func(has string) bool { return strings.HasPrefix(has, name+"=") }) {
			env = append(env, v)
		}
	}
	cmd.Env = env
}
