package request_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// SPEC 11.10: attempts continue, with back-off, exactly as long as the task is kept.
func TestPollsFail(t *testing.T) {
	if 10*time.Minute != new(task.Tasks).Core().Retention {
		t.Errorf("%v is not the retention %v", 10*time.Minute, new(task.Tasks).Core().Retention)
	}
	for _, tc := range []struct {
		name  string
		poll  time.Duration
		kept  time.Duration // as the server has said; 0 is not at all
		first []time.Duration
		last  time.Duration
		tries int
	}{
		{"not said", s, 0, []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 25 * s, 35 * s}, 10 * time.Minute, 64},
		{"said", s, 20 * s, []time.Duration{0, s, 3 * s, 7 * s, 15 * s}, 20 * s, 6},
		{"said to be longer", s, time.Hour, []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 25 * s}, time.Hour, 364},
		{"rarely", 30 * s, 0, []time.Duration{0, 30 * s, 60 * s, 90 * s}, 10 * time.Minute, 21},
		{"expired", s, -1, []time.Duration{0}, 0, 1},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			start := time.Now()
			var expires time.Time
			if tc.kept != 0 {
				expires = start.Add(tc.kept)
			}
			var p request.Polls
			var tries []time.Duration
			for {
				tries = append(tries, time.Since(start))
				wait, ok := p.Failed(tc.poll, expires)
				if !ok {
					break
				}
				time.Sleep(wait)
			}
			if d := cmp.Diff(tc.first, tries[:len(tc.first)]); d != "" || len(tries) != tc.tries || tries[len(tries)-1] != tc.last {
				t.Errorf("%d tries until %v, %s", len(tries), tries[len(tries)-1], d)
			}
		})
	}
}

// SPEC 11.9: a client asks once more before the ttl ends that the server has told.
func TestPollsAnswered(t *testing.T) {
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
			{"now", now, 10 * s},
			{"passed", now.Add(-s), 10 * s},
		} {
			if got := new(request.Polls).Answered(10*s, tc.expires); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
			}
		}
	})
}
