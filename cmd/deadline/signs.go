package main

import (
	"strings"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// signs selects the signs of life of --alive. notices selects heartbeats on the socket of --notify.
type signs struct{ output, cpu, io, notices bool }

func parseSigns(s string) (all signs, err error) {
	for word := range strings.SplitSeq(s, ",") {
		switch word {
		case "output":
			all.output = true
		case "cpu":
			all.cpu = true
		case "io":
			all.io = true
		default:
			return all, usageError("invalid argument " + quote(s) + " for '--alive': want output, cpu or io, separated by commas")
		}
	}
	return all, nil
}

func (s signs) activity() procgroup.Activity { return procgroup.Activity{CPU: s.cpu, IO: s.io} }

// String returns the names of the selected signs, for a message about a command that was idle.
func (s signs) String() string {
	var all []string
	for _, sign := range []struct {
		name     string
		selected bool
	}{{"output", s.output}, {"work", s.cpu || s.io}, {"heartbeat", s.notices}} {
		if sign.selected {
			all = append(all, sign.name)
		}
	}
	return strings.Join(all, " or ")
}
