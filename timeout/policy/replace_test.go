package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A nil policy cannot keep what replaces it, and says so.
func TestReplaceOfNil(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "nil *Policy") {
			t.Errorf("panic %q", text)
		}
	}()
	(*policy.Policy)(nil).Replace(new(policy.Policy))
}

// The fields of a replaced policy are not in force, so reading into them must not look like success.
func TestUnmarshalAfterReplace(t *testing.T) {
	t.Parallel()
	var p policy.Policy
	p.Replace(new(policy.Policy))
	if err := json.Unmarshal([]byte(`{"timeout": 60}`), &p); err == nil || p.Default != nil {
		t.Errorf("error %v, default %v", err, p.Default)
	}
}

// The error shows the request as it was made, without an exponent.
func TestNegativeRequest(t *testing.T) {
	t.Parallel()
	_, err := new(policy.Policy).Resolve("build", -1)
	var bad *timeout.ConfigError
	if !errors.As(err, &bad) || bad.Value != "-0.000001" {
		t.Errorf("%v", err)
	}
}
