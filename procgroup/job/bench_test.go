//go:build unix

package job_test

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// How long after the last thing that a command does the wait for its end is over, and how that compares
// with the end of a command as os/exec sees it.
func BenchmarkWaitForTheEnd(b *testing.B) {
	const script = "date +%s%N"
	late := func(text []byte) time.Duration {
		now := time.Now()
		at, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return now.Sub(time.Unix(0, at))
	}
	b.Run("job", func(b *testing.B) {
		s := newJobs(b, &job.Set{})
		var sum time.Duration
		for b.Loop() {
			j, err := s.Start(context.Background(), exec.Command("sh", "-c", script))
			if err != nil {
				b.Fatal(err)
			}
			j.Wait(context.Background(), job.Until{})
			sum += late(j.Read(0, 0).Data)
		}
		b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs-after-the-end")
	})
	b.Run("os/exec", func(b *testing.B) {
		var sum time.Duration
		for b.Loop() {
			out, err := exec.Command("sh", "-c", script).Output()
			if err != nil {
				b.Fatal(err)
			}
			sum += late(out)
		}
		b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs-after-the-end")
	})
}
