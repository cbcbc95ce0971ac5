//go:build !unix || aix

package sdnotify

import (
	"errors"
	"fmt"
	"syscall"
)

var errNoSockets = fmt.Errorf("this system has no such sockets: %w", errors.ErrUnsupported)

// Listen returns an error that matches errors.ErrUnsupported: this system has no sockets of this kind.
func Listen(string, *syscall.SysProcAttr) (Socket, error) { return nil, errNoSockets }

// Send returns an error that matches errors.ErrUnsupported: this system has no sockets of this kind.
func Send(addr, text string) error { return errNoSockets }
