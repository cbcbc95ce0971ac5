package sdktest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// declared tests SPEC 10.1: a server declares the limits of its tools, as policy and environment set them when the
// tools are listed.
func declared(t *testing.T, sdk SDK) {
	var env map[string]string
	var own object
	over(t, sdk, func() Config {
		env, own = map[string]string{}, object{"own": "kept"}
		return Config{Declared: true, Tools: map[string]Tool{"explore": {Run: wait, Meta: own}, "noop": {Run: wait}, "search": {Run: wait}}, Policy: &policy.Policy{
			Default: &timeout.Config{Total: time.Minute, Idle: 30 * s},
			Tools: map[string]policy.Tool{
				"explore": {Limits: &timeout.Config{Total: 10 * time.Minute}, Env: "EXPLORE"},
				"noop":    {Env: "NOOP"},
			},
			Lookup: func(key string) (string, bool) { v, ok := env[key]; return v, ok },
		}}
	}, func(t *testing.T, p *Peer) {
		fast := object{"totalMs": 60000.0, "idleMs": 30000.0, "graceMs": 7000.0, "progressMs": 10000.0}
		long := object{"totalMs": 600000.0, "idleMs": 0.0, "graceMs": 7000.0, "progressMs": 10000.0}
		extensions, _ := p.declared()["extensions"].(object)
		if d := cmp.Diff(any(fast), extensions[policy.DeclarationKey]); d != "" {
			t.Error("capabilities:", d)
		}
		list := func() object {
			all := object{}
			for name, tool := range p.tools() {
				all[name], _ = tool["_meta"].(object)
			}
			return all
		}
		if d := cmp.Diff(object{"explore": object{"own": "kept", policy.DeclarationKey: long}, "noop": object{policy.DeclarationKey: fast}, "search": object{policy.DeclarationKey: fast}}, list()); d != "" {
			t.Error(d)
		}
		env["EXPLORE_TIMEOUT_MS"], env["NOOP_TIMEOUT_MS"] = "1500", "soon" // "soon" is not valid
		long["totalMs"] = 1500.0
		all := list()
		if d := cmp.Diff(object{"own": "kept", policy.DeclarationKey: long}, all["explore"]); d != "" {
			t.Error(d)
		}
		if noop := all["noop"].(object); noop[policy.DeclarationKey] != nil || len(own) != 1 {
			t.Error(noop, own)
		}
	})
	t.Run("not", func(t *testing.T) { // without the option, nothing is declared
		over(t, sdk, func() Config { return Config{Tools: map[string]Tool{"noop": {Run: wait}}} }, func(t *testing.T, p *Peer) {
			extensions, _ := p.declared()["extensions"].(object)
			if tool := p.tools()["noop"]; len(extensions) > 0 || tool == nil || tool["_meta"] != nil {
				t.Error(extensions, tool)
			}
		}, "lines")
	})
}
