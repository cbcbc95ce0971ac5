package timeout

import "os/exec"

// endedBySignal reports false: signals have no numbers here.
func endedBySignal(*exec.ExitError) (int, bool) { return 0, false }

// isShortage reports false: the errors of the system are texts, and have no numbers.
func isShortage(error) bool { return false }
