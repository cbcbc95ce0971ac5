package procgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// SPEC 6.18: a command is not looked at while there is output, nor before it was silent for a while.
func TestNoLookDuringOutput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo x; sleep 0.05; done; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := Start(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Wait() //nolint:errcheck // it is aborted
	defer cancel()
	looks := make(chan time.Duration, 100)
	for begun := time.Now(); p.input.timer.Load() == nil; time.Sleep(time.Millisecond) { // the watch begins on another goroutine
		if time.Since(begun) > time.Minute {
			t.Fatal("it is never looked at")
		}
	}
	p.input.mu.Lock() // as a look in progress, which would use these
	for p.input.looking {
		p.input.mu.Unlock()
		time.Sleep(time.Millisecond)
		p.input.mu.Lock()
	}
	meter := p.input.meter
	p.input.meter = func() waits.Look {
		_, since, _ := p.out.Prompt(p.input.answered)
		looks <- time.Since(since)
		return meter()
	}
	p.input.mu.Unlock()
	for range 2 {
		select {
		case silent := <-looks: // a busy machine may make a pause, so there is no count
			if silent < waits.LookEvery {
				t.Errorf("it is looked at %v after output", silent)
			}
		case <-time.After(time.Minute):
			t.Fatal("it is silent, and is not looked at")
		}
	}
}

// SPEC 6.18: a command whose input never makes it wait is never looked at.
func TestNoLookWithoutInput(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		looked     bool
	}{
		{"no standard input", "", false},
		{"the null device", os.DevNull, false},
		{"an empty file", empty, false},
		{"a file", "/proc/self/exe", false},
		{"a pipe", "|", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "60")
			switch tt.file {
			case "":
			case "|":
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
			default:
				f, err := os.Open(tt.file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd.Stdin = f
			}
			ctx, cancel := context.WithCancel(context.Background())
			p, err := Start(ctx, cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Wait() //nolint:errcheck // it is aborted
			defer cancel()
			if p.canWait != tt.looked { // without that no watch begins
				t.Errorf("looks: %v, want %v", p.canWait, tt.looked)
			}
		})
	}
}
