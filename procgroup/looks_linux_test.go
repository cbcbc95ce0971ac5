package procgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"golang.org/x/sys/unix"
)

// SPEC 6.18: a command is not looked at while there is output, nor before it was silent for a while.
func TestNoLookDuringOutput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo x; sleep 0.05; done; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := Start(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Wait() //nolint:errcheck // it is aborted
	defer cancel()
	looks := make(chan time.Duration, 100)
	for begun := time.Now(); p.input.timer.Load() == nil; time.Sleep(time.Millisecond) { // the watch begins on another goroutine
		if time.Since(begun) > time.Minute {
			t.Fatal("it is never looked at")
		}
	}
	p.input.mu.Lock() // as a look in progress, which would use these
	for p.input.looking {
		p.input.mu.Unlock()
		time.Sleep(time.Millisecond)
		p.input.mu.Lock()
	}
	meter := p.input.meter
	p.input.meter = func() proctree.InputLook {
		_, since, _ := p.out.Prompt(p.input.answered)
		looks <- time.Since(since)
		return meter()
	}
	p.input.mu.Unlock()
	for range 2 {
		select {
		case silent := <-looks: // a busy machine may make a pause, so there is no count
			if silent < proctree.LookEvery {
				t.Errorf("it is looked at %v after output", silent)
			}
		case <-time.After(time.Minute):
			t.Fatal("it is silent, and is not looked at")
		}
	}
}

// SPEC 6.18: a command whose input never makes it wait is never looked at.
func TestNoLookWithoutInput(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		looked     bool
	}{
		{"no standard input", "", false},
		{"the null device", os.DevNull, false},
		{"an empty file", empty, false},
		{"a file", "/proc/self/exe", false},
		{"a pipe", "|", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "60")
			switch tt.file {
			case "":
			case "|":
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
			default:
				f, err := os.Open(tt.file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd.Stdin = f
			}
			ctx, cancel := context.WithCancel(context.Background())
			p, err := Start(ctx, cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Wait() //nolint:errcheck // it is aborted
			defer cancel()
			if p.canWait != tt.looked { // without that no watch begins, see TestInputOfPrograms for one that does
				t.Errorf("looks: %v, want %v", p.canWait, tt.looked)
			}
		})
	}
}

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
		b.Run(tt.name+"/first", measure(func() { proctree.WatchInput(p.tree, p.stdin)() }))
		meter := proctree.WatchInput(p.tree, p.stdin)
		b.Run(tt.name+"/again", measure(func() { meter() }))
		cancel()
		_, _ = p.Wait()
		in.Close()
	}
}

// BenchmarkInputFound measures the time from a prompt to the call of WithInputWait.
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
		p, err := Start(ctx, cmd, WithInputWait(func(w InputWait) {
			if w.Prompt != "" {
				told <- time.Now()
			}
		}))
		if err != nil {
			b.Fatal(err)
		}
		at := <-told
		_, since, _ := p.out.Prompt(p.input.answered)
		all, longest = all+at.Sub(since), max(longest, at.Sub(since))
		cancel()
		_, _ = p.Wait()
		in.Close()
	}
	b.ReportMetric(float64((all / time.Duration(b.N)).Milliseconds()), "ms-mean")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}
