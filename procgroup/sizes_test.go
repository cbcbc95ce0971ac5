//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.20: a command may write as much as the limit, to both streams together, and not a byte more. At its end it was
// stopped, or has ended by itself.
func TestOutputLimit(t *testing.T) {
	const much = "tool wrote more than 8 bytes."
	stopped := func(o outcome) func(*Run) {
		o.Message, o.Error = much, much
		return func(r *Run) {
			is(o, procgroup.ErrOutput)(r)
			if stop := (*timeout.Error)(nil); errors.As(r.Err, &stop) || errors.Is(r.Err, timeout.ErrAborted) {
				r.Errorf("%v is an abort too", r.Err)
			}
			if len(r.Result.Tree.Processes) == 0 {
				r.Error("the result does not say what the processes did")
			}
		}
	}
	limit := procgroup.Capture{Limit: 8}
	both := Script{writes(4), {Do: Write, FD: 2, N: 5}, lasts}
	for _, s := range []Scenario{
		{Name: "as much", Script: Script{writes(8), sleeps(time.Second)}, Want: []string{"1s 1: exit 0", "1s wait: exited 0"}, Check: is(outcome{Stdout: "abcdefgh", Combined: "abcdefgh"})},
		{Name: "one byte more", Script: Script{writes(8), sleeps(time.Second), prints, lasts}, Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "1s wait: too much output 153"},
			Check: stopped(outcome{Stdout: "abcdefghi", Combined: "abcdefghi"})},
		{Name: "one byte more through one pipe", Script: both, Options: []procgroup.Option{procgroup.Capture{Limit: 8, OnePipe: true}},
			Want: []string{"0s 1: SIGTERM, dies of SIGTERM", "0s wait: too much output 153"}, Check: stopped(outcome{Stdout: "abcdefghi", Combined: "abcdefghi"})},
		{Name: "exits with 0 when it is asked to end", Script: Script{traps(syscall.SIGTERM, sleeps(time.Second), exits(0)), writes(9), lasts},
			Want: []string{"0s 1: SIGTERM, SIGCONT", "1s 1: exit 0", "1s wait: too much output 153"}, Check: stopped(outcome{Stdout: "abcdefghi", Combined: "abcdefghi"})},
		{
			// SPEC 6.14: and it keeps no writer from getting all of it.
			Name: "what is read after the end", Script: Script{prints, sleeps(time.Second), writes(8)},
			Set:   func(r *Run) { r.Cmd.Stdout = &slowWriter{late: 3 * time.Second} },
			Want:  []string{"1s 1: exit 0", "3s wait: exited 0"},
			Check: func(r *Run) { is(outcome{Stdout: "abcdefghi", Combined: "abcdefghi"})(r); mustHave(r, "abcdefghi") },
		},
	} {
		s.Options = append([]procgroup.Option{limit}, s.Options...)
		Test(t, s)
	}
}

// A negative number of bytes is refused before anything is started.
func TestNegativeBytes(t *testing.T) {
	dir, err := procgroup.NewSpillDir(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for key, opt := range map[string]procgroup.Option{
		"Capture.Head": procgroup.Capture{Head: -1}, "Capture.Limit": procgroup.Capture{Limit: -1}, "Capture.Tail": procgroup.Capture{Tail: -1}, "Capture.SpillMax": procgroup.Capture{Spill: dir, SpillMax: -1},
	} {
		cmd := exec.Command("true")
		_, err := procgroup.Start(context.Background(), cmd, opt)
		if c := (*timeout.ConfigError)(nil); !errors.As(err, &c) || c.Key != key || cmd.Process != nil || !strings.Contains(err.Error(), "0 or more bytes") {
			t.Errorf("%s: %v", key, err)
		}
	}
	_, err = procgroup.NewSpillDir(t.TempDir(), -1)
	if c := (*timeout.ConfigError)(nil); !errors.As(err, &c) || c.Key != "NewSpillDir" {
		t.Error(err)
	}
}
