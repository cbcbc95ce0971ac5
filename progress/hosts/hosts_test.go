package hosts_test

import (
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/hosts"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A host is found by the name that it sends, and not by a name that resembles it. SPEC 18.5.
func TestFind(t *testing.T) {
	for _, tc := range []struct{ name, client, want string }{
		{"as recorded", "codex-mcp-client", "codex"},
		{"the server's name behind it", "qwen-cli-mcp-client-files", "qwen-code"},
		{"a part of it", "qwen-cli", ""},
		{"more than it", "codex-mcp-client-files", ""},
		{"our name of it", "codex", ""},
		{"another case", "Claude-Code", ""},
		{"none", "", ""},
		{"what is at its end", "*", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, known := hosts.Find(tc.client); got.Name != tc.want || known != (tc.want != "") {
				t.Errorf("%q, %v, want %q", got.Name, known, tc.want)
			}
		})
	}
}

// A host waits for silence where progress renews its limit. SPEC 18.5.
func TestBudget(t *testing.T) {
	for _, tc := range []struct {
		name string
		host hosts.Host
		want policy.Budget
	}{
		{"none", hosts.Host{}, policy.Budget{}},
		{"a limit", hosts.Host{Limit: time.Minute}, policy.Budget{Left: time.Minute}},
		{"a limit of silence", hosts.Host{Limit: time.Hour, Idle: time.Minute}, policy.Budget{Left: time.Hour, Idle: time.Minute}},
		{"renewed", hosts.Host{Limit: time.Minute, Renewed: true}, policy.Budget{Idle: time.Minute}},
		{"renewed, and a shorter one of silence", hosts.Host{Limit: time.Hour, Idle: time.Minute, Renewed: true}, policy.Budget{Idle: time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.host.Budget(); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// What All returns is the caller's.
func TestAllIsACopy(t *testing.T) {
	hosts.All()[0].Name = "mine"
	if got := hosts.All()[0].Name; got == "mine" {
		t.Error("the table was changed")
	}
}
