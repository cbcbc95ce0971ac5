package adapter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// SPEC 11.9: a client asks once more before the ttl ends that the server has told.
func TestNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, tc := range []struct {
			name    string
			expires time.Time
			want    time.Duration
		}{
			{"not known", time.Time{}, 10 * s},
			{"after the poll", now.Add(10*s + 1), 10 * s},
			{"with the poll", now.Add(10 * s), 5 * s},
			{"before the poll", now.Add(4 * s), 2 * s},
			{"now", now, 10 * s},
			{"passed", now.Add(-s), 10 * s},
		} {
			if got := adapter.NextPoll(10*s, tc.expires); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
			}
		}
	})
}
