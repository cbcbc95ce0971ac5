//go:build js || wasip1

package procgroup_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// SPEC 6.10. A system without processes says that it has none.
func TestNoProcesses(t *testing.T) {
	if _, err := procgroup.Start(context.Background(), exec.Command("/bin/true")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Start returned %v, want %v", err, errors.ErrUnsupported)
	}
}
