package procgroup_test

import (
	"errors"
	"math"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func TestActivityRefused(t *testing.T) {
	for _, tt := range []struct {
		activity procgroup.Activity
		want     string
	}{
		{procgroup.Activity{CPU: true, CPURate: -1}, "Activity.CPURate"},
		{procgroup.Activity{IO: true, IORate: math.NaN()}, "Activity.IORate"},
		{procgroup.Activity{CPU: true, CPURate: math.Inf(1)}, "Activity.CPURate"},
	} {
		r, err := procgroup.Run(t.Context(), exec.Command("true"), tt.activity)
		var bad *timeout.ConfigError
		if r != nil || !errors.As(err, &bad) || bad.Key != tt.want {
			t.Errorf("%+v: %v", tt.activity, err)
		}
	}
}
