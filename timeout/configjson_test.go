package timeout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

func ExampleConfig_UnmarshalJSON() {
	limits := timeout.Default() // what the text does not give stays
	err := json.Unmarshal([]byte(`{"timeout": 600, "grace": "1.5s"}`), &limits)
	fmt.Println(limits.Total, limits.Idle, limits.Grace, err)

	err = json.Unmarshal([]byte(`{"idle-timeout": 60}`), &limits)
	fmt.Println(err)
	// Output:
	// 10m0s 2m0s 1.5s <nil>
	// timeout: idle-timeout="60": want the key idle_timeout
}

func ExampleConfig_MarshalJSON() {
	data, err := json.Marshal(timeout.Config{Total: 30 * time.Minute, Idle: 500 * time.Millisecond})
	fmt.Println(string(data), err)
	// Output: {"timeout":1800,"idle_timeout":0.5,"grace":0,"reserve":0} <nil>
}

// SPEC 2.12, 2.13: an absent key leaves its limit as it was, and 0 is off.
func TestConfigFromJSON(t *testing.T) {
	before := timeout.Config{Total: 5 * time.Second, Idle: 3 * time.Second, Grace: time.Second}
	for text, want := range map[string]timeout.Config{
		`{}`:                             before,
		` null `:                         before,
		`{"timeout":1800}`:               {Total: 30 * time.Minute, Idle: before.Idle, Grace: before.Grace},
		`{"idle_timeout":"2m"}`:          {Total: before.Total, Idle: 2 * time.Minute, Grace: before.Grace},
		`{"grace":7}`:                    {Total: before.Total, Idle: before.Idle, Grace: 7 * time.Second},
		`{"reserve":"30s"}`:              {Total: before.Total, Idle: before.Idle, Grace: before.Grace, Reserve: 30 * time.Second},
		`{"timeout":0,"idle_timeout":0}`: {Grace: before.Grace},
		`{"grace":-1,"timeout":-1}`:      {Total: -time.Second, Idle: before.Idle, Grace: -time.Second},
		"{\"timeout\": 1e3 ,\n\"grace\":\"0\"\n}": {Total: 1000 * time.Second, Idle: before.Idle},
	} {
		got := before
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		data, err := json.Marshal(got)
		var again timeout.Config
		if err != nil || json.Unmarshal(data, &again) != nil || again != got {
			t.Errorf("%s: %s, %v, %+v", text, data, err, again)
		}
	}
}

// SPEC 2.9, 2.12: an error names key, value and what is accepted, and nothing has changed.
func TestConfigFromJSONRefuses(t *testing.T) {
	const duration = `: want seconds as a number up to 9223372036, such as 120 or 0.5, no finer than a nanosecond, or a duration in quotation marks, such as "30m"`
	long := strings.Repeat("9", 100)
	for text, want := range map[string]string{
		`{"Timeout":1800}`:                `timeout: Timeout="1800": want the key timeout`,
		`{"timeouts":1800,"port":5}`:      `timeout: timeouts="1800": want the key timeout`,
		`{"idleTimeout":1800}`:            `timeout: idleTimeout="1800": want the key idle_timeout`,
		`{"port":1,"port":2}`:             `timeout: port="2": want each key once`,
		`{"timeout":1,"timeout":2}`:       `timeout: timeout="2": want each key once`,
		`{"timeout":"soon"}`:              `timeout: timeout="\"soon\""` + duration,
		`{"timeout":"1800"}`:              `timeout: timeout="\"1800\""` + duration,
		`{"timeout":null}`:                `timeout: timeout="null"` + duration,
		`{"timeout":true}`:                `timeout: timeout="true"` + duration,
		`{"timeout":{"seconds":5}}`:       `timeout: timeout="{\"seconds\":5}"` + duration,
		`{"timeout":1e400}`:               `timeout: timeout="1e400"` + duration,
		`{"timeout":9223372037}`:          `timeout: timeout="9223372037"` + duration,
		`{"timeout":9223372036854775808}`: `timeout: timeout="9223372036854775808"` + duration,
		`{"timeout":` + long + `}`:        `timeout: timeout="` + long[:64] + `..."` + duration,
		`{"grace":1e-10,"timeout":5}`:     `timeout: grace="1e-10"` + duration,
		`{"idle_timeout":1,"grace":"x"}`:  `timeout: grace="\"x\""` + duration,
		`[]`:                              `timeout: limits="[]": want an object such as {"timeout": 1800, "idle_timeout": 120}`,
		`1800`:                            `timeout: limits="1800": want an object such as {"timeout": 1800, "idle_timeout": 120}`,
		`{"reserve":"half"}`:              `timeout: reserve="\"half\""` + duration,
		`{"timeout":NaN}`:                 "",
		`{"timeout":1} {"timeout":2}`:     "",
	} {
		got := timeout.FastTools()
		err := json.Unmarshal([]byte(text), &got)
		var bad *timeout.ConfigError
		if err == nil || want != "" && (!errors.As(err, &bad) || err.Error() != want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if got != timeout.FastTools() {
			t.Errorf("%s: changed to %+v", text, got)
		}
	}
	if err := new(timeout.Config).UnmarshalJSON([]byte(`{"timeout":1`)); err == nil {
		t.Error("half an object was read")
	}
}

func FuzzConfigJSON(f *testing.F) {
	for _, s := range []string{`{"timeout":1800,"idle_timeout":"2m","grace":-1,"reserve":30}`, `{"timeout":1e3}`, `{"timeout":1,"timeout":1}`, `null`, `{"grace":{}}`, `{"timeout":"0.1ns"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := timeout.FastTools()
		if err := json.Unmarshal(data, &got); err != nil {
			if got != timeout.FastTools() {
				t.Errorf("%s: %v, and changed", data, err)
			}
			return
		}
		written, err := json.Marshal(got)
		var again timeout.Config
		if err != nil || json.Unmarshal(written, &again) != nil || again != got {
			t.Errorf("%s: %+v, written as %s, read as %+v", data, got, written, again)
		}
	})
}
