package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Parse returns the policy that a JSON text describes:
//
//	{"timeout": 1800, "idle_timeout": "2m", "grace": 7, "tools": {
//		"tlc_smoke": {"timeout": 120, "env": "TLC_SMOKE"},
//		"build": {"soft": 45, "task_only": true, "max_timeout": "1h"}
//	}}
//
// The keys of limits are those that [timeout.Config.UnmarshalJSON] reads. At the top they set the policy's Default.
// max_timeout is [Tool.MaxTotal]. A duration is a number of seconds or a string such as "30m". A tool inherits each
// limit that it does not set from the top, and the top inherits from the process default at the time of the call of
// Parse.
//
// The policy may also be nested under a key mcp, and then the keys beside mcp are ignored. Unknown keys beside those
// of the policy are ignored, too, because other programs may share the file, and a text without any key of a policy
// sets nothing.
//
// The error is a [*timeout.ConfigError] for a key that differs from a key of a policy by one letter, by case or by a
// hyphen (in a text with no key of a policy, only if its value could be meant, too), a key of a tool (max_timeout,
// soft or task_only) at the top, a key that is given twice, and a value that is not accepted, such as null. For a
// text that is not JSON, the error is that of encoding/json. The Key of the ConfigError is the path to the value,
// such as tools.build.soft. A byte order mark before the text is ignored.
func Parse(data []byte) (*Policy, error) {
	data = withoutMark(data)
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, &timeout.ConfigError{Key: "policy", Value: "null", Accepted: acceptedPolicy}
	}
	p := new(Policy)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, err
	}
	return p, nil
}

// withoutMark returns data without the byte order mark that some editors write.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

const (
	acceptedPolicy = `an object such as {"timeout": 1800, "tools": {"build": {"timeout": 600}}}`
	acceptedEnv    = "the name of an environment variable, such as TLC_SMOKE"
)

// UnmarshalJSON reads the form that [Parse] reads. It is for programs that have a policy in their settings, and for
// libraries that read YAML as JSON, such as sigs.k8s.io/yaml. A setting that the text does not contain keeps its value,
// in the policy and in each tool, so a text can change a part of a policy. A limit that a tool has inherited when it
// was read is its own from then on, and does not follow a later text that changes the limits of all. After an error p
// is unchanged. A JSON null changes nothing. UnmarshalJSON is not safe for concurrent use, and after [Policy.Replace]
// it returns an error, because the fields of p are no longer in force.
func (p *Policy) UnmarshalJSON(data []byte) error {
	if p.Current() != p {
		return errReplaced
	}
	if string(data) == "null" {
		return nil
	}
	members, err := object("", data, acceptedPolicy)
	if err != nil {
		return err
	}
	inner, nested := members[keyMCP]
	if !nested {
		return p.read("", members)
	}
	if members, err = object(keyMCP, inner, acceptedPolicy); err != nil {
		return err
	}
	return p.read(keyMCP+".", members)
}

var errReplaced = errors.New("policy: a replaced policy cannot be read into; call Replace again")

const (
	keyMCP   = "mcp"
	keyTools = "tools"
)

// limitKeys returns the JSON keys of a Config.
func limitKeys() []string {
	return slices.Sorted(maps.Keys(members(new(timeout.Config))))
}

// read reads the members of a policy. prefix is the path to them, for the keys in errors.
func (p *Policy) read(prefix string, members map[string]json.RawMessage) error {
	limits := p.Default
	tools, inherited := p.Tools, p.inherited
	base := p.base()
	known := map[string]func(json.RawMessage) error{
		keyTools: func(json.RawMessage) error { return nil }, // read below, after the limits to inherit
	}
	ours := prefix != "" // if false, the text may be that of another program
	for key := range members {
		ours = ours || key == keyTools || slices.Contains(limitKeys(), key)
	}
	if prefix == "" {
		known[keyMCP] = nil
	}
	if !ours { // "trace": true is not a misspelt grace; "trace": 5 may be
		members = maps.Clone(members)
		maps.DeleteFunc(members, func(key string, value json.RawMessage) bool {
			switch setting.Misspelled(key, []string{keyMCP, keyTools}) {
			case "":
				_, ok := setting.Duration(value)
				return !ok
			default:
				_, ok := setting.Object(value)
				return !ok
			}
		})
	}
	for _, key := range []string{"max_timeout", "soft", "task_only"} { // not env: other files use it
		if ours {
			known[key] = func(json.RawMessage) error { return errors.New("it in one of the " + keyTools) }
		}
	}
	if err := readMembers(prefix, "", members, known, base, &limits); err != nil {
		return err
	}
	if limits != nil {
		base = *limits
	}
	if value, ok := members[keyTools]; ok {
		named, err := object(prefix+keyTools, value, "an object that maps names of tools to limits")
		if err != nil {
			return err
		}
		if tools = maps.Clone(tools); tools == nil {
			tools = make(map[string]Tool)
		}
		if inherited = maps.Clone(inherited); inherited == nil {
			inherited = make(map[string]inheritance)
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			t := tools[name]
			before := t.Limits
			if err := t.read(prefix+keyTools+".", name, named[name], base); err != nil {
				return err
			}
			tools[name] = t
			if i, ok := inherited[name].read(named[name], before, t.Limits, base); ok {
				inherited[name] = i
			}
		}
	}
	p.Default, p.Tools, p.inherited = limits, tools, inherited
	return nil
}

// read reads a tool. A tool without Limits inherits from base each limit that the text does not set.
func (t *Tool) read(prefix, name string, value json.RawMessage, base timeout.Config) error {
	members, err := object(prefix+name, value, `an object such as {"timeout": 600}`)
	if err != nil {
		return at("", name, err)
	}
	if t.Limits != nil {
		base = *t.Limits
	}
	duration := func(to *time.Duration) func(json.RawMessage) error {
		return func(value json.RawMessage) (err error) {
			var ok bool
			if *to, ok = setting.Duration(value); !ok {
				err = errors.New(setting.AcceptedDuration)
			}
			return err
		}
	}
	return readMembers(prefix+name+".", name, members, map[string]func(json.RawMessage) error{
		"max_timeout": duration(&t.MaxTotal),
		"soft":        duration(&t.Soft),
		"task_only": func(value json.RawMessage) error {
			t.TaskOnly = string(value) == "true"
			if !t.TaskOnly && string(value) != "false" {
				return errors.New("true or false")
			}
			return nil
		},
		"env": func(value json.RawMessage) error {
			var text *string
			if json.Unmarshal(value, &text) != nil || text == nil || *text == "" || strings.ContainsAny(*text, "= \t\r\n\x00") {
				return errors.New(acceptedEnv)
			}
			t.Env = *text
			return nil
		},
	}, base, &t.Limits)
}

// readMembers reads limits into a copy of base, which it sets *limits to if there are any, and the other members with
// the functions in own. The error of such a function is the text for Accepted. A key that is not known is an error if
// it is misspelled, and otherwise ignored.
func readMembers(prefix, tool string, members map[string]json.RawMessage, own map[string]func(json.RawMessage) error, base timeout.Config, limits **timeout.Config) error {
	keys := limitKeys()
	known := append(slices.Sorted(maps.Keys(own)), keys...)
	given := false
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value := members[key]
		bad := &timeout.ConfigError{Tool: tool, Key: prefix + key, Value: string(value)}
		switch {
		case own[key] != nil:
			if err := own[key](value); err != nil {
				bad.Accepted = err.Error()
				return bad
			}
		case slices.Contains(keys, key):
			given = true
			if err := base.UnmarshalJSON([]byte(`{"` + key + `":` + string(value) + `}`)); err != nil {
				return at(prefix, tool, err)
			}
		default:
			if meant := setting.Misspelled(key, known); meant != "" {
				bad.Accepted = "the key " + meant
				return bad
			}
		}
	}
	if given {
		*limits = &base
	}
	return nil
}

// object returns the members of a JSON object. path is the path to the object in the text, "" for the whole text. The
// error names accepted, or the key that is given twice.
func object(path string, value json.RawMessage, accepted string) (map[string]json.RawMessage, error) {
	members, ok := setting.Object(value)
	if ok {
		return members, nil
	}
	bad := &timeout.ConfigError{Key: cmp.Or(path, "policy"), Value: string(value), Accepted: accepted}
	for twice, value := range members {
		bad.Key, bad.Value, bad.Accepted = strings.TrimPrefix(path+"."+twice, "."), string(value), "each key once"
	}
	return nil, bad
}

// at adds prefix to the key of err, if err is a ConfigError, sets its tool, and returns it.
func at(prefix, tool string, err error) error {
	var bad *timeout.ConfigError
	if errors.As(err, &bad) {
		bad.Key, bad.Tool = prefix+bad.Key, tool
	}
	return err
}

// MarshalJSON returns the Default and the Tools in the form that [Parse] reads, with all limits in seconds. It omits
// the other fields of the policy and the field ObserveOnly of each tool, because a file cannot set them.
func (p *Policy) MarshalJSON() ([]byte, error) {
	p = p.Current()
	all, tools := members(p.Default), make(map[string]any)
	for name, t := range p.Tools {
		tool := members(t.Limits)
		if t.MaxTotal != 0 {
			tool["max_timeout"] = setting.Number(t.MaxTotal)
		}
		if t.Soft != 0 {
			tool["soft"] = setting.Number(t.Soft)
		}
		if t.TaskOnly {
			tool["task_only"] = true
		}
		if t.Env != "" {
			tool["env"] = t.Env
		}
		tools[name] = tool
	}
	if len(tools) > 0 {
		all[keyTools] = tools
	}
	return json.Marshal(all)
}

// members returns the members of the JSON object of limits, or none if limits is nil.
func members(limits *timeout.Config) map[string]any {
	all := make(map[string]any)
	if limits != nil {
		data, _ := limits.MarshalJSON()
		written, _ := setting.Object(data)
		for key, value := range written {
			all[key] = value
		}
	}
	return all
}
