package procgroup_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// mustPanic checks that f panics with a *timeout.ConfigError for a key.
func mustPanic(t *testing.T, name, key string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if bad, ok := recover().(*timeout.ConfigError); !ok || bad.Key != key {
			t.Errorf("%s: panicked with %v, want a ConfigError of %s", name, bad, key)
		}
	}()
	f()
}

// What is wrong in the text of a program panics before anything is started.
func TestMisuse(t *testing.T) {
	ctx, cmd := context.Background(), exec.Command("true")
	var none context.Context
	mustPanic(t, "no context", "context", func() { _, _ = procgroup.Start(none, cmd) })
	mustPanic(t, "no command", "command", func() { _, _ = procgroup.Run(ctx, nil) })
	mustPanic(t, "keeps and discards", "Capture.Discard", func() { _, _ = procgroup.Run(ctx, cmd, procgroup.Capture{Discard: true, Head: 1}) })
	if cmd.Process != nil {
		t.Error("started")
	}
}

// Of two options of one type the later one counts, as a whole; zero values and nil change nothing.
func TestLaterOptionReplaces(t *testing.T) {
	for name, opts := range map[string][]procgroup.Option{
		"Stop":        {procgroup.Stop{Closing: os.Kill}, procgroup.Stop{}},
		"Capture":     {procgroup.Capture{Tail: 1, Limit: -1}, procgroup.Capture{}},
		"Resources":   {procgroup.Resources{CPU: -1}, procgroup.Resources{}},
		"Containment": {procgroup.Containment("none"), procgroup.Containment("")},
		"Activity":    {procgroup.Activity{CPURate: -1}, procgroup.Activity{}},
		"zero values": {nil, procgroup.Limits{}, procgroup.Input{}, procgroup.Terminal{}},
	} {
		r, err := procgroup.Run(t.Context(), exec.Command("echo", "two"), opts...)
		if err != nil || r.Stdout.String() != "two\n" {
			t.Errorf("%s: %v, %v", name, err, r)
		}
	}
}
