package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// hostTotals has the total limit that suits each host: a little less than the host's own limit, so
// that the answer comes first. 0 means no limit, for hosts that have none or renew it on progress.
// The table is that of docs/hosts.md.
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
