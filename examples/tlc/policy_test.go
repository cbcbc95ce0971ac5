package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 2.6, 2.7, 2.8.
func TestPolicy(t *testing.T) {
	t.Parallel()
	const idle = 2 * time.Minute
	for name, tc := range map[string]struct {
		tool    string
		request string
		env     map[string]string
		want    timeout.Config
	}{
		"check":             {"check", "", nil, timeout.Config{Idle: idle}},
		"smoke":             {"smoke", "", nil, timeout.Config{Total: 120_000 * time.Millisecond, Idle: idle}},
		"explore":           {"explore", "", nil, timeout.Config{Total: 600_000 * time.Millisecond, Idle: idle}},
		"smoke, variable":   {"smoke", "", map[string]string{"TLC_SMOKE_TIMEOUT_MS": "240000"}, timeout.Config{Total: 4 * time.Minute, Idle: idle}},
		"explore, variable": {"explore", "", map[string]string{"TLC_EXPLORE_TIMEOUT_MS": "0"}, timeout.Config{Idle: idle}},
		"request first":     {"smoke", "180000", map[string]string{"TLC_SMOKE_TIMEOUT_MS": "240000"}, timeout.Config{Total: 3 * time.Minute, Idle: idle}},
		"ceiling":           {"explore", "3600001", nil, timeout.Config{Total: time.Hour, Idle: idle}},
		"check, request":    {"check", "7200000", nil, timeout.Config{Total: 2 * time.Hour, Idle: idle}},
	} {
		var log bytes.Buffer
		p := limitsOfTools(newLogger(&log))
		p.Lookup = func(key string) (string, bool) { s, ok := tc.env[key]; return s, ok }
		var request time.Duration
		if tc.request != "" {
			var err error
			if request, err = parseRequest(tc.request); err != nil {
				t.Fatal(err)
			}
		}
		got, err := p.Resolve(tools[tc.tool].name, request)
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tc.want)
		}
		if warned := strings.Contains(log.String(), "ceiling"); warned != (name == "ceiling") {
			t.Errorf("%s: log %q", name, log.String())
		}
	}
}

func TestParseRequest(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{"1": time.Millisecond, "9223372036854": 9223372036854 * time.Millisecond} {
		if got, err := parseRequest(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "1.5", "1s", "9223372036855", "99999999999999999999"} {
		if got, err := parseRequest(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
