package request_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 2.12: the limits of a client have the form of a server's, and write themselves back.
func TestLimitsFromJSON(t *testing.T) {
	const s = time.Second
	before := request.Limits{Timeout: s, MaxTotal: 2 * s, ResetOnProgress: true}
	for text, want := range map[string]request.Limits{
		`{"timeout":30}`: {Timeout: 30 * s, MaxTotal: 2 * s, ResetOnProgress: true},
		`{"timeout":0.5,"max_total":"30m","reset_on_progress":false}`: {Timeout: s / 2, MaxTotal: 30 * time.Minute},
		`{"max_total":0,"note":"ours"}`:                               {Timeout: s, ResetOnProgress: true},
		`{}`:                                                          before,
		`null`:                                                        before,
	} {
		got := before
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		written, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var again request.Limits
		if err := json.Unmarshal(written, &again); err != nil || again != got {
			t.Errorf("%s: written as %s, read as %+v, %v", text, written, again, err)
		}
	}
	var perMethod map[string]request.Limits
	if err := json.Unmarshal([]byte(`{"tools/call":{"timeout":30},"resources/*":{"timeout":"10s"}}`), &perMethod); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]request.Limits{"tools/call": {Timeout: 30 * s}, "resources/*": {Timeout: 10 * s}}, perMethod); d != "" {
		t.Error(d)
	}
}

// SPEC 2.9.
func TestLimitsFromJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"timeout":"30"}`:            "timeout",
		`{"timeout":null}`:            "timeout",
		`{"max_total":1e10}`:          "max_total",
		`{"reset_on_progress":"yes"}`: "reset_on_progress",
		`{"reset_on_progress":1}`:     "reset_on_progress",
		`{"Timeout":30}`:              "Timeout",
		`{"maxTotal":30}`:             "maxTotal",
		`{"resetOnProgress":true}`:    "resetOnProgress",
		`{"port":3002,"port":3003}`:   "port",
		`{"timeout":1,"timeout":2}`:   "timeout",
		`30`:                          "limits",
		`[]`:                          "limits",
	} {
		got := request.Limits{Timeout: time.Second}
		err := json.Unmarshal([]byte(text), &got)
		var bad *timeout.ConfigError
		if !errors.As(err, &bad) || bad.Key != want {
			t.Errorf("%s: %v, want an error of %q", text, err, want)
		}
		if got != (request.Limits{Timeout: time.Second}) {
			t.Errorf("%s: changed to %+v", text, got)
		}
	}
}

// The limits per method of a client, from its settings.
func ExampleLimits_UnmarshalJSON() {
	var perMethod map[string]request.Limits
	err := json.Unmarshal([]byte(`{
		"tools/call":  {"timeout": 30, "max_total": "30m", "reset_on_progress": true},
		"resources/*": {"timeout": 10}
	}`), &perMethod)
	fmt.Println(perMethod["tools/call"].Timeout, perMethod["tools/call"].MaxTotal, perMethod["resources/*"].Timeout, err)
	// Output: 30s 30m0s 10s <nil>
}

func ExampleLimits_MarshalJSON() {
	text, err := json.Marshal(request.Limits{Timeout: 30 * time.Second, ResetOnProgress: true})
	fmt.Println(string(text), err)
	// Output: {"timeout":30,"max_total":0,"reset_on_progress":true} <nil>
}
