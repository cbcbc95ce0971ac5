package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// shortLog logs level and message to the standard output.
func shortLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 || a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func ExamplePolicy_Resolve() {
	p := &policy.Policy{
		Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
		Tools: map[string]policy.Tool{
			"explore": {
				Limits:   &timeout.Config{Total: 10 * time.Minute, Idle: 2 * time.Minute},
				Env:      "EXPLORE", // EXPLORE_TIMEOUT_MS
				MaxTotal: time.Hour,
			},
		},
		Lookup: func(key string) (string, bool) { return "900000", key == "EXPLORE_TIMEOUT_MS" },
	}
	for _, call := range []struct {
		tool    string
		request time.Duration
	}{{"search", 0}, {"explore", 0}, {"explore", 20 * time.Minute}, {"explore", 24 * time.Hour}} {
		config, err := p.Resolve(call.tool, call.request)
		fmt.Println(call.tool, config.Total, err)
	}
	// Output:
	// search 1m0s <nil>
	// explore 15m0s <nil>
	// explore 20m0s <nil>
	// explore 1h0m0s <nil>
}

// One call of a tool: its limits, its name and the policy's logger.
func ExamplePolicy_For() {
	p := &policy.Policy{
		Tools: map[string]policy.Tool{
			"explore": {
				Limits:   &timeout.Config{Total: 3 * time.Minute},
				MaxTotal: 20 * time.Millisecond,
			},
		},
		Lookup: func(string) (string, bool) { return "", false },
		Logger: shortLog(),
	}
	requested := time.Hour
	found, err := timeout.Do(context.Background(), func(ctx context.Context) (found []string, err error) {
		found = append(found, "a.go")
		<-ctx.Done() // explores until it is stopped
		return found, ctx.Err()
	}, p.For("explore", requested)...)
	fmt.Println(found, err)
	// Output:
	// level=WARN msg="requested timeout exceeds the tool's ceiling; using the ceiling" tool=explore requested=1h0m0s ceiling=20ms
	// level=WARN msg="tool timed out" tool=explore
	// [a.go] Tool exceeded wall-clock limit of 0.02s.
}

// Some hosts set MCP_TIMEOUT in milliseconds. A value that looks like that is taken, with a
// warning; a policy may name variables that nobody else sets.
func ExamplePolicy() {
	env := map[string]string{"MCP_TIMEOUT": "60000", "TLA_TIMEOUT": "600"}
	lookup := func(key string) (string, bool) { v, ok := env[key]; return v, ok }

	general := &policy.Policy{Lookup: lookup, Logger: shortLog()}
	limits, err := general.Resolve("check", 0)
	fmt.Println(limits.Total, err)

	own := &policy.Policy{TotalEnv: "TLA_TIMEOUT", IdleEnv: "-", Lookup: lookup, Logger: shortLog()}
	limits, err = own.Resolve("check", 0)
	fmt.Println(limits.Total, err)
	// Output:
	// level=WARN msg="MCP_TIMEOUT=60000 is in seconds, so it means 16.7 hours; in milliseconds it would be 1m0s: for that, set MCP_TIMEOUT=60" tool=check
	// 16h40m0s <nil>
	// 10m0s <nil>
}

func ExamplePolicy_Observes() {
	p := &policy.Policy{Tools: map[string]policy.Tool{"new": {ObserveOnly: true}}}
	fmt.Println(p.Observes("new"), p.Observes("old"))
	// Output: true false
}

// A hand-written server takes what the caller asks for from the arguments.
func ExampleRequested() {
	p := &policy.Policy{Tools: map[string]policy.Tool{"search": {MaxTotal: time.Minute}}}
	for _, arguments := range []string{`{"timeoutMs": 1500}`, `{}`, `{"timeoutMs": 3600000}`, `{"timeoutMs": "soon"}`} {
		var args struct {
			TimeoutMs json.RawMessage `json:"timeoutMs"`
		}
		if err := json.Unmarshal([]byte(arguments), &args); err != nil {
			fmt.Println(err)
			continue
		}
		requested, err := policy.Requested(args.TimeoutMs)
		if err != nil {
			fmt.Println(err)
			continue
		}
		limits, err := p.Resolve("search", requested)
		fmt.Println(requested, limits.Total, err)
	}
	// Output:
	// 1.5s 1.5s <nil>
	// 0s 30m0s <nil>
	// 1h0m0s 1m0s <nil>
	// timeout: timeoutMs="\"soon\"": want milliseconds as a whole number from 1 to 9223372036854, such as 120000
}

func ExamplePolicy_Soft() {
	p := &policy.Policy{Tools: map[string]policy.Tool{
		"explore": {Soft: 30 * time.Second},
		"prove":   {TaskOnly: true},
	}}
	fmt.Println(p.Soft("explore"))
	fmt.Println(p.Soft("prove"))
	fmt.Println(p.Soft("parse"))
	// Output:
	// 30s false
	// -1ns true
	// 0s false
}

func ExampleReadDeclaration() {
	meta := map[string]any{policy.DeclarationKey: map[string]any{"totalMs": 600000.0, "idleMs": 120000.0}}
	limits, ok := policy.ReadDeclaration(meta)
	fmt.Println(limits.Total, limits.Idle, ok)

	meta = map[string]any{policy.DeclarationKey: map[string]any{"totalMs": -1.0, "idleMs": 120000.0}}
	_, ok = policy.ReadDeclaration(meta)
	fmt.Println(ok)
	// Output:
	// 10m0s 2m0s true
	// false
}

func ExampleDeclaration_Object() {
	fmt.Println(policy.Declaration{Total: time.Minute, Soft: 30 * time.Second}.Object())
	// Output: map[idleMs:0 softMs:30000 totalMs:60000]
}

func ExampleDeclaration_Method() {
	server := policy.Declaration{Methods: map[string]policy.Declaration{"resources/*": {Total: 10 * time.Second}}}
	limits, ok := server.Method("resources/read")
	fmt.Println(limits.Total, ok)
	// Output: 10s true
}

func ExampleDeclaration_MarshalJSON() {
	data, err := json.Marshal(policy.Declaration{Total: time.Minute, Idle: 1500 * time.Microsecond})
	fmt.Println(string(data), err)
	// Output: {"idleMs":1.5,"totalMs":60000} <nil>
}

func ExampleDeclaration_UnmarshalJSON() {
	var limits policy.Declaration
	err := json.Unmarshal([]byte(`{"totalMs":60000,"idleMs":"soon"}`), &limits)
	fmt.Println(err)
	// Output: timeout: idleMs="\"soon\"": want a number of milliseconds from 0 to 2^53
}

// The limits of a server in a file.
func ExampleParse() {
	p, err := policy.Parse([]byte(`{
		"timeout": 1800, "idle_timeout": "2m",
		"tools": {
			"tlc_smoke": {"timeout": 120, "env": "TLC_SMOKE"},
			"build": {"soft": 45, "max_timeout": "1h"}
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range []string{"tlc_smoke", "build"} {
		limits, err := p.Resolve(tool, 0)
		fmt.Println(tool, limits.Total, limits.Idle, err)
	}

	_, err = policy.Parse([]byte(`{"tools": {"build": {"idle-timeout": 45}}}`))
	fmt.Println(err)
	// Output:
	// tlc_smoke 2m0s 2m0s <nil>
	// build 30m0s 2m0s <nil>
	// timeout: tools.build.idle-timeout="45": want the key idle_timeout
}

// A program may have a policy among its settings, and a file may change a part of what the program has.
func ExamplePolicy_UnmarshalJSON() {
	var settings struct {
		Address string        `json:"address"`
		MCP     policy.Policy `json:"mcp"`
	}
	settings.MCP.Tools = map[string]policy.Tool{"search": {Limits: &timeout.Config{Total: time.Minute, Idle: time.Second}}}

	err := json.Unmarshal([]byte(`{"address": ":8137", "mcp": {"tools": {"search": {"timeout": 300}}}}`), &settings)
	limits, _ := settings.MCP.Resolve("search", 0)
	fmt.Println(limits.Total, limits.Idle, err)
	// Output: 5m0s 1s <nil>
}

func ExamplePolicy_MarshalJSON() {
	p := &policy.Policy{
		Default: &timeout.Config{Total: time.Minute},
		Tools:   map[string]policy.Tool{"build": {Soft: 45 * time.Second}},
	}
	data, err := json.Marshal(p)
	fmt.Println(string(data), err)
	// Output: {"grace":0,"idle_timeout":0,"reserve":0,"timeout":60,"tools":{"build":{"soft":45}}} <nil>
}

// A line for the log, at the start.
func ExamplePolicy_Explain() {
	p := &policy.Policy{
		Tools:  map[string]policy.Tool{"smoke": {Limits: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, Env: "SMOKE"}},
		Lookup: func(key string) (string, bool) { return "120000", key == "SMOKE_TIMEOUT_MS" },
	}
	fmt.Println(p.Explain("smoke", 0))
	// Output: timeout 2m0s (SMOKE_TIMEOUT_MS), idle_timeout 30s (tool), grace 7s (default) <nil>
}

func ExamplePolicy_SessionTimeout() {
	p := &policy.Policy{
		Default: &timeout.Config{Total: time.Minute},
		Tools:   map[string]policy.Tool{"build": {MaxTotal: time.Hour}},
		Lookup:  func(string) (string, bool) { return "", false },
	}
	fmt.Println(p.SessionTimeout())
	// Output: 1h0m30s <nil>
}

// The file has changed: the calls in progress keep their limits.
func ExamplePolicy_Replace() {
	none := func(string) (string, bool) { return "", false }
	p := &policy.Policy{Default: &timeout.Config{Total: time.Minute}, Lookup: none} // the adapters have it

	next, err := policy.Parse([]byte(`{"timeout": 300, "idle_timeout": 0}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Replace(next)
	limits, err := p.Resolve("search", 0)
	fmt.Println(limits.Total, err)
	// Output: 5m0s <nil>
}

func ExamplePolicy_Current() {
	p := &policy.Policy{Tools: map[string]policy.Tool{"build": {MaxTotal: time.Minute}}}
	p.Replace(&policy.Policy{Tools: map[string]policy.Tool{"build": {MaxTotal: time.Hour}}})
	fmt.Println(p.Current().Tools["build"].MaxTotal)
	// Output: 1h0m0s
}

func ExampleSetDefault() {
	defer timeout.SetDefault(timeout.Default())
	os.Setenv("MCP_TIMEOUT", "600")
	defer os.Unsetenv("MCP_TIMEOUT")

	// What a settings file of the program may hold, beside much else.
	notes, err := policy.SetDefault([]byte(`{"port": 3002, "mcp": {"timeout": 1800, "idle_timeout": "1m"}}`))
	fmt.Println(notes, err)
	limits, _ := timeout.ProcessDefault()
	fmt.Println(limits.Total, limits.Idle)
	// Output:
	// [MCP_TIMEOUT=600 overrides timeout 30m0s of the file] <nil>
	// 10m0s 1m0s
}
