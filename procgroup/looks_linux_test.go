package procgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
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
