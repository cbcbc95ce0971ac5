package procgroup_test

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
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
	if cmd.Process != nil {
		t.Error("started")
	}
}

// SPEC 2.9: a value that cannot be meant is an error that names it, and nothing is started.
func TestRefusedOptions(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		option     procgroup.Option
	}{
		{"Activity.CPURate", "-1", procgroup.Activity{CPU: true, CPURate: -1}},
		{"Activity.CPURate", "NaN", procgroup.Activity{CPU: true, CPURate: math.NaN()}},
		{"Activity.CPURate", "+Inf", procgroup.Activity{CPU: true, CPURate: math.Inf(1)}},
		{"Capture.Head", "-1", procgroup.Capture{Head: -1}},
		{"Capture.Limit", "-1", procgroup.Capture{Limit: -1}},
		{"Capture.SpillMax", "-1", procgroup.Capture{SpillMax: -1}},
		{"Containment", "cgroups", procgroup.Containment("cgroups")},
		{"Containment", "Group", procgroup.Containment("Group")},
		{"Resources.Memory", "-1", procgroup.Resources{Memory: -1}},
		{"Resources.Memory", "4095", procgroup.Resources{Memory: 4095, BestEffort: true}},
		{"Resources.Processes", "-1", procgroup.Resources{Processes: -1}},
		{"Resources.CPU", "-1", procgroup.Resources{CPU: -1}},
		{"Resources.CPU", "0.009", procgroup.Resources{CPU: 0.009}},
		{"Resources.CPU", "10001", procgroup.Resources{CPU: 10_001}},
		{"Resources.CPU", "NaN", procgroup.Resources{CPU: math.NaN()}},
		{"Resources.CPU", "+Inf", procgroup.Resources{CPU: math.Inf(1)}},
	} {
		t.Run(tt.key+" "+tt.value, func(t *testing.T) {
			cmd := exec.Command("true")
			_, err := procgroup.Start(t.Context(), cmd, tt.option)
			var bad *timeout.ConfigError
			if !errors.As(err, &bad) || bad.Key != tt.key || !strings.HasPrefix(bad.Value, tt.value) || cmd.Process != nil {
				t.Errorf("%v, %v", err, cmd.Process)
			}
		})
	}
	_, err := procgroup.NewSpillDir(t.TempDir(), -1)
	if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "NewSpillDir" {
		t.Error(err)
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
