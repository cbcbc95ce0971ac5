package procgroup

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"golang.org/x/sys/unix"
)

// What one look costs, by the processor time of this process: the first one, at all threads, and one after which nothing
// has run.
func BenchmarkInputLook(b *testing.B) {
	used := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, tt := range []struct{ name, script string }{
		{"cat", "exec cat"},
		{"npm", `echo '{"scripts": {"x": "read x"}}' >package.json; npm run x`},
	} {
		cmd := exec.Command("sh", "-c", tt.script)
		cmd.Dir = b.TempDir()
		if _, err := exec.LookPath(tt.name); err != nil {
			b.Log(tt.name, "is not installed")
			continue
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		p, err := Start(ctx, cmd)
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(3 * time.Second) // it starts
		measure := func(look func()) func(b *testing.B) {
			return func(b *testing.B) {
				before := used()
				for b.Loop() {
					look()
				}
				b.ReportMetric(float64(used()-before)/float64(b.N)/1e3, "cpu-µs/op")
			}
		}
		b.Run(tt.name+"/first", measure(func() { waits.Watch(p.tree, p.stdin)() }))
		meter := waits.Watch(p.tree, p.stdin)
		b.Run(tt.name+"/again", measure(func() { meter() }))
		cancel()
		_, _ = p.Wait()
		in.Close()
	}
}

// BenchmarkInputFound measures the time from a prompt to the call of Notify of Input.
func BenchmarkInputFound(b *testing.B) {
	var all, longest time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		cmd := exec.Command("sh", "-c", "printf 'Name: '; read x")
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		told := make(chan time.Time, 1)
		p, err := Start(ctx, cmd, Input{Notify: func(w InputWait) {
			if w.Prompt != "" {
				told <- time.Now()
			}
		}})
		if err != nil {
			b.Fatal(err)
		}
		at := <-told
		_, since, _ := p.out.Prompt(p.input.wentOnAt)
		all, longest = all+at.Sub(since), max(longest, at.Sub(since))
		cancel()
		_, _ = p.Wait()
		in.Close()
	}
	b.ReportMetric(float64((all / time.Duration(b.N)).Milliseconds()), "ms-mean")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}
