//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package proctree

import (
	"fmt"
	"os/exec"
	"runtime"
)

// LeadTerminal returns an error.
func LeadTerminal(*exec.Cmd, bool) error {
	return fmt.Errorf("procgroup: Terminal: %w", unsupported("on "+runtime.GOOS+" a command cannot be given a terminal"))
}
