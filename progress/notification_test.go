package progress_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
)

// SPEC 7.1, 7.3: the token is unchanged, and unknown values are omitted.
func TestWireForm(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   progress.Notification
		want string // empty: an error
	}{
		{"all", progress.Notification{ProgressToken: "t", Progress: 1.5, Total: 3, Message: "m"}, `{"progressToken":"t","progress":1.5,"total":3,"message":"m"}`},
		{"progress of 0 is said", progress.Notification{ProgressToken: "t"}, `{"progressToken":"t","progress":0}`},
		{"the empty string is a token", progress.Notification{ProgressToken: ""}, `{"progressToken":"","progress":0}`},
		{"int", progress.Notification{ProgressToken: 0}, `{"progressToken":0,"progress":0}`},
		{"int64 above 2^53", progress.Notification{ProgressToken: int64(9007199254740993)}, `{"progressToken":9007199254740993,"progress":0}`},
		{"number above 2^63", progress.Notification{ProgressToken: json.Number("18446744073709551617")}, `{"progressToken":18446744073709551617,"progress":0}`},
		{"raw", progress.Notification{ProgressToken: json.RawMessage(`"é\u00e9"`)}, `{"progressToken":"é\u00e9","progress":0}`},
		{"whole float", progress.Notification{ProgressToken: 1e21}, `{"progressToken":1000000000000000000000,"progress":0}`},
		{"negative float", progress.Notification{ProgressToken: -3.0}, `{"progressToken":-3,"progress":0}`},
		{"negative progress", progress.Notification{ProgressToken: 1, Progress: -2}, `{"progressToken":1,"progress":-2}`},
		{"negative total is unknown", progress.Notification{ProgressToken: 1, Total: -2}, `{"progressToken":1,"progress":0}`},
		{"infinite total is unknown", progress.Notification{ProgressToken: 1, Total: math.Inf(1)}, `{"progressToken":1,"progress":0}`},
		{"NaN total is unknown", progress.Notification{ProgressToken: 1, Total: math.NaN()}, `{"progressToken":1,"progress":0}`},
		{"no token", progress.Notification{}, ""},
		{"bool", progress.Notification{ProgressToken: true}, ""},
		{"object", progress.Notification{ProgressToken: map[string]any{}}, ""},
		{"null", progress.Notification{ProgressToken: json.RawMessage("null")}, ""},
		{"NaN token", progress.Notification{ProgressToken: math.NaN()}, ""},
		{"infinite token", progress.Notification{ProgressToken: math.Inf(1)}, ""},
		{"channel", progress.Notification{ProgressToken: make(chan int)}, ""},
		{"NaN progress", progress.Notification{ProgressToken: 1, Progress: math.NaN()}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := json.Marshal(tc.in)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("%s, %v", got, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
