package timeout

import "os/exec"

// endedBySignal reports false, because signals have no numbers on Plan 9.
func endedBySignal(*exec.ExitError) (int, bool) { return 0, false }

// isShortage reports false, because the errors of Plan 9 are texts without numbers.
func isShortage(error) bool { return false }
