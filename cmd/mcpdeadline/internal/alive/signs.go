package alive

import (
	"errors"
	"runtime"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// Signs selects the signs of life that renew the idle limit.
type Signs struct {
	Progress, Log, Stderr bool
	Notify                bool // heartbeats on the socket of procgroup.Notify
	Work                  procgroup.Activity
}

// CanObserve returns an error if a is invalid, or if the work that a selects cannot be observed on this system.
func CanObserve(a procgroup.Activity) error {
	if (a.CPU || a.IO) && runtime.GOOS != "linux" {
		return errors.New("the work of a server is observed on Linux only")
	}
	return a.Check()
}
