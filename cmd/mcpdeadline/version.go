package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// linkedVersion and linkedCommit are set by the linker for a release. A program that the go command
// has built or installed has them in its build information.
var linkedVersion, linkedCommit string

// versionText returns the line that --version prints. This file is the same in both programs.
func versionText(program string) string {
	version, commit := linkedVersion, linkedCommit
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = cmp.Or(commit, s.Value)
			}
		}
	}
	return fmt.Sprintf("%s (tooldeadline) %s, commit %s, %s %s/%s\n", program,
		cmp.Or(version, "(devel)"), cmp.Or(commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
