package main

import (
	"context"
	"os"
	"strconv"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
)

// launcherVar names the variable with the process id of a launcher that waits for this program, because the launcher
// could not replace itself by the program: with Node on Windows, and before Node 22.15. The launcher passes signals
// on, unless it has been killed.
const launcherVar = "TOOLDEADLINE_LAUNCHER"

// withLauncher returns a context that is done when the launcher has ended or parent is done. Processes that this
// program starts do not inherit the variable. This file is the same in both programs.
func withLauncher(parent context.Context) (context.Context, context.CancelFunc) {
	pid, err := strconv.Atoi(os.Getenv(launcherVar))
	_ = os.Unsetenv(launcherVar)
	if err != nil || pid <= 0 {
		return context.WithCancel(parent)
	}
	return mcphost.ContextOf(parent, pid)
}
