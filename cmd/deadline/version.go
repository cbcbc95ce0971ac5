package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// linkedVersion and linkedCommit are set by the linker in a release, and are otherwise "".
var linkedVersion, linkedCommit string

// versionText returns the line that --version prints. Values that the linker has not set come from the build
// information. This file is the same in cmd/deadline and cmd/mcpdeadline.
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
