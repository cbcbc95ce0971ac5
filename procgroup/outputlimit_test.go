//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.20: a command may write as much as the limit, to both streams together, and not a byte
// more.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	stopped := want{code: 153, reason: procgroup.TooMuchOutput, message: "tool wrote more than 8 bytes."}
	for _, tt := range []struct {
		name, script string
		opts         []procgroup.Option
		want         want
	}{
		{"as much", "printf 12345678; sleep 0.3", nil, want{}},
		{"as much on both", "printf 1234; printf 5678 >&2; sleep 0.3", nil, want{}},
		{"one byte more", "printf 123456789; exec sleep 60", nil, stopped},
		{"one byte more on both", "printf 1234; printf 56789 >&2; exec sleep 60", nil, stopped},
		{"one byte more through one pipe", "printf 1234; printf 56789 >&2; exec sleep 60", []procgroup.Option{procgroup.WithOnePipe()}, stopped},
		{"nothing is kept", "printf 123456789; exec sleep 60", []procgroup.Option{procgroup.WithMaxOutput(-1)}, stopped},
		{"exits with 0 when it is asked to end", "trap 'exit 0' TERM; printf 123456789; while :; do sleep 0.05; done", nil, stopped},
		{"no limit", "printf 123456789", []procgroup.Option{procgroup.WithOutputLimit(0)}, want{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := append([]procgroup.Option{procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithOutputLimit(8)}, tt.opts...)
			r, err := within(t, longLimit, exec.Command("sh", "-c", tt.script), opts...)
			check(t, r, err, tt.want)
			if errors.Is(err, procgroup.ErrOutput) != (tt.want.code == 153) || (err != nil && err.Error() != tt.want.message) {
				t.Errorf("error %v", err)
			}
			if stop := (*timeout.Error)(nil); errors.As(err, &stop) || errors.Is(err, timeout.ErrAborted) {
				t.Errorf("%v is an abort too", err)
			}
			if tt.want.code == 153 && len(r.Tree.Processes) == 0 {
				t.Error("the result does not say what the processes did")
			}
		})
	}
}

// SPEC 6.20, 6.14: at the moment of its end a command was stopped, or has ended by itself; then a
// slow writer gets all of the output.
func TestOutputLimitAtTheEnd(t *testing.T) {
	t.Parallel()
	for range 50 {
		var out bytes.Buffer
		cmd := exec.Command("printf", "123456789")
		cmd.Stdout = writerFunc(out.Write)
		r, err := procgroup.Run(context.Background(), cmd, procgroup.WithOutputLimit(8))
		switch {
		case r.Reason == procgroup.Exited && err == nil && r.ExitCode == 0 && r.Message == "":
		case r.Reason == procgroup.TooMuchOutput && errors.Is(err, procgroup.ErrOutput) && r.ExitCode == 153:
		default:
			t.Errorf("%v: %+v", err, r)
		}
		if out.String() != "123456789" || r.Stdout.String() != "123456789" || r.Unwritten != 0 {
			t.Errorf("%v: wrote %q, kept %q", r.Reason, &out, r.Stdout)
		}
	}
}

// SPEC 6.20, 6.14: output that is read after the command has ended stops nothing, and keeps no
// writer from getting all of it.
func TestOutputLimitAfterTheEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	var out bytes.Buffer
	cmd := exec.Command("sh", "-c", "printf 1; read line; printf 23456789")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		_ = in.Close() // the first byte has been read alone
		<-ended        // so that the rest is read at the end only
		return out.Write(p)
	})
	p, err := procgroup.Start(context.Background(), cmd, procgroup.WithOutputLimit(8), procgroup.WithKillGrace(longLimit))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the command", func() bool { return !alive(p.Pid) })
	time.Sleep(5 * time.Second) // for its end to have been seen, and the rest to be read
	close(ended)
	r, err := p.Wait()
	check(t, r, err, want{})
	if out.String() != "123456789" || r.Stdout.String() != "123456789" || r.Unwritten != 0 {
		t.Errorf("wrote %q, kept %q", &out, r.Stdout)
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
		"WithHead": procgroup.WithHead(-1), "WithOutputLimit": procgroup.WithOutputLimit(-1), "WithSpill": procgroup.WithSpill(dir, -1),
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
