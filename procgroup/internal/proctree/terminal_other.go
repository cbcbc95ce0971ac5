//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package proctree

import (
	"fmt"
	"os/exec"
	"runtime"
)

// LeadTerminal returns an error that wraps errors.ErrUnsupported: these systems cannot give a command a terminal.
func LeadTerminal(*exec.Cmd, bool) error {
	return fmt.Errorf("procgroup: Terminal: %w", unsupported("on "+runtime.GOOS+" a command cannot be given a terminal"))
}
