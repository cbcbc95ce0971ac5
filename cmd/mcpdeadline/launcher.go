package main

import (
	"context"
	"os"
	"strconv"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
)

// launcherVar names the environment variable with the process id of a launcher that waits for this program: a Node
// script that cannot replace itself by the program, because it runs on Windows or a Node before 22.15. The launcher
// forwards signals, but cannot if it is killed.
const launcherVar = "TOOLDEADLINE_LAUNCHER"

// withLauncher returns a context that is done when the launcher has ended or parent is done, and unsets the variable,
// so that child processes do not inherit it. This file is the same in cmd/deadline and cmd/mcpdeadline.
func withLauncher(parent context.Context) (context.Context, context.CancelFunc) {
	pid, err := strconv.Atoi(os.Getenv(launcherVar))
	_ = os.Unsetenv(launcherVar)
	if err != nil || pid <= 0 {
		return context.WithCancel(parent)
	}
	return mcphost.ContextOf(parent, pid)
}
