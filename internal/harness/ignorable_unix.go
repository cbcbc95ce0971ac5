//go:build unix

package harness

import (
	"os"
	"syscall"
)

var ignorable = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
