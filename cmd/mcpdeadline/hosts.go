package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// hostTotals is by how much a call may take in a host that does not wait longer, whatever its
// progress: a little less than the host's own limit, so that an answer comes before it. 0 is
// none: the host waits, or renews its limit with progress. It is the table of docs/hosts.md.
var hostTotals = map[string]time.Duration{
	"claude-code":    0,
	"claude-desktop": 50 * time.Second,
	"codex":          290 * time.Second,
	"gemini-cli":     590 * time.Second,
	"cline":          50 * time.Second,
	"opencode":       0,
	"goose":          290 * time.Second,
	"zed":            50 * time.Second,
	"vscode":         0,
}

func hostNames() string {
	return strings.Join(slices.Sorted(maps.Keys(hostTotals)), ", ")
}
