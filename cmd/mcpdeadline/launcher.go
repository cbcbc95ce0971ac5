package main

import (
	"context"
	"os"
	"strconv"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
)

// launcherVar has the process id of a launcher that could not become this program, as Node's on Windows
// and before version 22.15. The launcher passes signals on, but one that is killed cannot.
const launcherVar = "TOOLDEADLINE_LAUNCHER"

// withLauncher returns a context that is done when the launcher has ended. What this program starts does
// not inherit the variable. This file is the same in both programs.
func withLauncher(parent context.Context) (context.Context, context.CancelFunc) {
	pid, err := strconv.Atoi(os.Getenv(launcherVar))
	_ = os.Unsetenv(launcherVar)
	if err != nil || pid <= 0 {
		return context.WithCancel(parent)
	}
	return mcphost.ContextOf(parent, pid)
}
