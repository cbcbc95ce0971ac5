package setting_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/setting"
)

// SPEC 2.12.
func TestMisspelled(t *testing.T) {
	known := []string{"mcp", "idle_timeout", "timeout", "tools", "reset_on_progress"}
	for key, want := range map[string]string{
		"timeout": "", "tools": "", "mcp": "", "": "", "port": "", "m": "", "idle": "", "total": "", "timeoutMs": "", "tooools": "",
		"Timeout": "timeout", "TIMEOUT": "timeout", "timeouts": "timeout", "imeout": "timeout", "timeut": "timeout", "timeoud": "timeout", "tiemout": "timeout", "timeotu": "timeout",
		"idle-timeout": "idle_timeout", "idleTimeout": "idle_timeout", "IDLE_TIMEOUT": "idle_timeout", "Idle-Timeuot": "idle_timeout", "idle timeout": "idle_timeout",
		"tool": "tools", "resetOnProgress": "reset_on_progress", "RESETONPROGRESS": "reset_on_progress", "MCP": "mcp", "mpc": "mcp", "mcpp": "mcp", "tïmeout": "",
	} {
		if got := setting.Misspelled(key, known); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
