//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package procgroup

import "os/exec"

// attach leaves Cancel as it is: it kills the process. There is no way to ask, so there
// is no grace either.
func attach(cmd *exec.Cmd, s *settings) error {
	if s.containment != Auto && s.containment != Leader {
		return unavailable(s.containment, unsupported("not with Attach"))
	}
	s.killGrace = 0
	return nil
}
