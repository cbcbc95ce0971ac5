//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Cmd that os/exec refuses is refused with the same error, which only os/exec itself can
// make.

// A variable with a NUL is refused, and not dropped: the command would run without it.
func TestNULInTheEnvironment(t *testing.T) {
	withNUL := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Env = append(cmd.Environ(), "SECRET=a\x00b")
		return cmd
	}
	want := withNUL(exec.Command("true")).Run()
	if want == nil {
		t.Fatal("os/exec accepts it")
	}
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		cmd := withNUL(exec.Command("true"))
		if _, err := procgroup.Run(t.Context(), cmd, containment); err == nil || err.Error() != want.Error() {
			t.Errorf("Run: %v, want %v", err, want)
		}
	})
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants} {
		cmd := withNUL(exec.CommandContext(t.Context(), "true"))
		procgroup.Attach(cmd, c)
		if err := cmd.Run(); err == nil || err.Error() != want.Error() {
			t.Errorf("Attach, %v: %v, want %v", c, err, want)
		}
	}
}

// A command that is none, and one whose start was tried before, are refused as by os/exec.
func TestStartRefusesAsOSExec(t *testing.T) {
	nowhere := func() *exec.Cmd {
		cmd := exec.Command("true")
		cmd.Dir = "/no/such/directory"
		return cmd
	}
	for _, tt := range []struct {
		name   string
		make   func() *exec.Cmd
		before func(*exec.Cmd)
	}{
		{"zero", func() *exec.Cmd { return new(exec.Cmd) }, nil},
		{"no directory to run in", nowhere, nil},
		{"no directory, with attributes", func() *exec.Cmd { // which os/exec does not name then
			cmd := nowhere()
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return cmd
		}, nil},
		{"neither a directory nor a command", func() *exec.Cmd {
			cmd := nowhere()
			cmd.Path, cmd.Err = "no-such-command", exec.ErrNotFound
			return cmd
		}, nil},
		{"failed", func() *exec.Cmd { return exec.Command("/no/such/command") }, func(cmd *exec.Cmd) {
			_, _ = procgroup.Start(context.Background(), cmd)
		}},
		{"no directory", nowhere, func(cmd *exec.Cmd) { _, _ = procgroup.Start(context.Background(), cmd) }},
		{"failed, then mended", nowhere, func(cmd *exec.Cmd) {
			_, _ = procgroup.Start(context.Background(), cmd)
			cmd.Dir = ""
		}},
		{"tried by os/exec", nowhere, func(cmd *exec.Cmd) { _ = cmd.Start() }},
		{"ended", func() *exec.Cmd { return exec.Command("true") }, func(cmd *exec.Cmd) {
			if _, err := procgroup.Run(context.Background(), cmd); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain, ours := tt.make(), tt.make()
			if tt.before != nil {
				if plain.Start() == nil {
					_ = plain.Wait()
				}
				tt.before(ours)
			}
			want := plain.Start()
			_, err := procgroup.Start(t.Context(), ours)
			if want == nil || err == nil || err.Error() != want.Error() {
				t.Errorf("%v, want %v", err, want)
			}
			if tt.before == nil || ours.Process != nil {
				return
			}
			// The other way round, too: os/exec refuses what was tried here.
			if err := ours.Start(); err == nil || err.Error() != want.Error() {
				t.Errorf("os/exec after that: %v, want %v", err, want)
			}
		})
	}
}

// One pipe cannot serve two writers.
func TestOnePipeForTwoWriters(t *testing.T) {
	for name, set := range map[string]func(*exec.Cmd){
		"two":         func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer) },
		"stderr only": func(cmd *exec.Cmd) { cmd.Stderr = new(bytes.Buffer) },
	} {
		cmd := exec.Command("true")
		set(cmd)
		_, err := procgroup.Run(t.Context(), cmd, procgroup.Capture{OnePipe: true})
		if wrong := (*timeout.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Key != "Capture.OnePipe" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
