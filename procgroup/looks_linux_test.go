package procgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// SPEC 6.18: a command whose input never makes it wait is never looked at.
func TestNoLookWithoutInput(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		group      bool // in the session of this process, whose terminal it may have
		opt        Option
		looked     bool
	}{
		{"no standard input", "", false, Group, false},
		{"the null device", os.DevNull, false, Group, false},
		{"an empty file", empty, false, Group, false},
		{"a file", "/proc/self/exe", false, Group, false},
		{"a pipe", "|", false, Group, true},
		{"the session of this process", "", true, Group, true},
		{"with a helper", "", false, Helper, false},
		{"with a helper, the session of this process", "", true, Helper, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "60")
			if tt.group {
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			}
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
			defer cancel()
			p, err := Start(ctx, cmd, tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			_, _ = p.Wait()
			if looked := p.input.timer.Load() != nil; looked != tt.looked {
				t.Errorf("looks: %v, want %v", looked, tt.looked)
			}
		})
	}
}
