package hosts

import (
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Host describes a program that calls tools.
type Host struct {
	Name    string        // a short name, such as "codex"
	Limit   time.Duration // how long the host waits for a tool call; 0 means that no limit below a day is known
	Idle    time.Duration // how long the host waits without progress; 0 means that no such limit is known
	Renewed bool          // progress renews Limit, which then limits only a wait without progress

	// Client is the name in the host's clientInfo. If it ends in "*", the rest is a prefix, after which the host
	// appends the user's name for the server. Client, Continues and Plain were recorded by running the host, and are
	// zero if the host was not run.
	Client    string
	Continues bool // in the recorded run, the model fetched the result of a call that was answered with a continuation
	Plain     bool // in the recorded run, the names of tools had no prefix with the name of the server
}

// table has the hosts in the order of docs/hosts.md.
var table = []Host{
	{Name: "claude-code", Idle: 30 * time.Minute},
	{Name: "claude-desktop", Limit: time.Minute},
	{Name: "codex", Limit: 5 * time.Minute},
	{Name: "gemini-cli", Limit: 10 * time.Minute},
	{Name: "qwen-code", Limit: 10 * time.Minute, Idle: 5 * time.Minute},
	{Name: "cline", Limit: time.Minute},
	{Name: "continue", Limit: time.Minute},
	{Name: "opencode", Limit: time.Minute, Renewed: true},
	{Name: "crush"},
	{Name: "goose", Limit: 5 * time.Minute},
	{Name: "zed", Limit: time.Minute},
	{Name: "vscode"},
}

// All returns the known hosts.
func All() []Host {
	all := slices.Clone(table)
	for i := range all {
		seen := records[all[i].Name]
		all[i].Client, all[i].Continues, all[i].Plain = seen.Client, seen.Continues, seen.Plain
	}
	return all
}

// Find returns the host that sends this name in the clientInfo of its initialize request. ok is false if no host
// that was run sends it. All versions of a host count as equal to the version that was run.
func Find(name string) (found Host, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(h Host) bool { return h.sends(name) })
	if i < 0 {
		return Host{}, false
	}
	return all[i], true
}

// sends reports whether the host sends this name in its clientInfo.
func (h Host) sends(name string) bool {
	begin, more := strings.CutSuffix(h.Client, "*")
	return h.Client != "" && (name == begin || more && strings.HasPrefix(name, begin))
}

// Budget returns how long the host waits for a call, in the form in which a client sends it. If progress renews Limit,
// Left is 0, and Idle is the shorter of Limit and the host's Idle. [policy.Budget.Answer] says when a server has to
// answer.
func (h Host) Budget() policy.Budget {
	if h.Renewed {
		return policy.Budget{Idle: h.Limit}.Shorter(policy.Budget{Idle: h.Idle})
	}
	return policy.Budget{Left: h.Limit, Idle: h.Idle}
}
