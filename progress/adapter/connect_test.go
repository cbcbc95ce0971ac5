package adapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.7: a caller that gives up while a server is waited for has given up, however soon after the failure.
func TestStandingEnds(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "a nanosecond before the next try": adapter.ReconnectInterval - 1} {
		bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			refused, tries := errors.New("refused"), 0
			_, err := adapter.Standing(ctx, func(error) bool {
				if after == 0 {
					cancel()
				} else {
					time.AfterFunc(after, cancel)
				}
				return true
			}, func() (int, error) { tries++; return 0, refused })
			if tries != 1 || !errors.Is(err, context.Canceled) || errors.Is(err, refused) || timeout.ExitCode(err) != 130 || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%d tries, %v, exit code %d", tries, err, timeout.ExitCode(err))
			}
		})
	}
}
