//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package proctree

import (
	"os/exec"
	"syscall"
	"time"
)

// Attach leaves Cancel as it is: it kills the process. There is no way to ask, so there
// is no grace either.
func Attach(cmd *exec.Cmd, kind Kind, _ syscall.Signal, _ time.Duration) (time.Duration, error) {
	if kind != Auto && kind != Leader {
		return 0, unavailable(kind, unsupported("not with Attach"))
	}
	return 0, nil
}
