package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 2.6, 2.12: the process default from a file, under the environment.
func TestSetDefault(t *testing.T) {
	before := timeout.Config{Total: time.Hour, Idle: 5 * time.Second, Grace: time.Second}
	for _, tc := range []struct {
		name, text  string
		total, idle string // variables; "" means not set
		want        timeout.Config
		notes       []string
	}{
		{"the file alone", `{"mcp":{"timeout":60,"port":3002}}`, "", "", timeout.Config{Total: time.Minute, Idle: 5 * time.Second, Grace: time.Second}, nil},
		{"the environment overrides", `{"timeout":60,"idle_timeout":"10s"}`, "30", "",
			timeout.Config{Total: 30 * time.Second, Idle: 10 * time.Second, Grace: time.Second}, []string{"MCP_TIMEOUT=30 overrides timeout 1m0s of the file"}},
		{"a byte order mark", "\ufeff" + `{"timeout":60}`, "30", "",
			timeout.Config{Total: 30 * time.Second, Idle: 5 * time.Second, Grace: time.Second}, []string{"MCP_TIMEOUT=30 overrides timeout 1m0s of the file"}},
		{"both", `{"timeout":0,"idle_timeout":"10s"}`, "30", "0",
			timeout.Config{Total: 30 * time.Second, Grace: time.Second}, []string{"MCP_TIMEOUT=30 overrides timeout off of the file", "MCP_IDLE_TIMEOUT=0 overrides idle_timeout 10s of the file"}},
		{"what the file does not give is not overridden", `{"timeout":60}`, "", "7", timeout.Config{Total: time.Minute, Idle: 7 * time.Second, Grace: time.Second}, nil},
		{"corrected", `{"timeout":60,"idle_timeout":90}`, "", "", timeout.Config{Total: time.Minute, Idle: time.Minute, Grace: time.Second},
			[]string{"idle timeout 1m30s exceeds total timeout 1m0s; using 1m0s"}},
		{"nothing of ours", `{"port":3002}`, "30", "", before, nil},
		{"an empty section", `{"mcp":{}}`, "30", "", before, nil},
		{"only tools", `{"tools":{"a":{"timeout":5}}}`, "30", "", before, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for key, value := range map[string]string{"MCP_TIMEOUT": tc.total, "MCP_IDLE_TIMEOUT": tc.idle} {
				if value != "" {
					t.Setenv(key, value)
				}
			}
			timeout.SetDefault(before)
			defer timeout.SetDefault(timeout.Default())
			notes, err := policy.SetDefault([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := timeout.ProcessDefault()
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.notes, notes); d != "" {
				t.Error(d)
			}
		})
	}
}

// SPEC 2.9: after an error the process default is as before.
func TestSetDefaultRefuses(t *testing.T) {
	timeout.SetDefault(timeout.FastTools())
	defer timeout.SetDefault(timeout.Default())
	t.Setenv("MCP_TIMEOUT", "soon")
	for text, key := range map[string]string{`{"timeout":60}`: "MCP_TIMEOUT", `{"timeout":"x"}`: "timeout", `{"Timeout":5}`: "Timeout", `[]`: "policy"} {
		_, err := policy.SetDefault([]byte(text))
		var bad *timeout.ConfigError
		if !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%s: %v, want an error of %s", text, err, key)
		}
		if got, _ := timeout.ProcessDefault(); got != timeout.FastTools() {
			t.Errorf("%s: the process default is %+v", text, got)
		}
	}
}
