//go:build linux

package procgroup_test

import (
	"bytes"
	"errors"
	"math"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.5: a daemon that holds the streams does not hold up the call, and the
// result says so.
func TestDaemonHoldsStreams(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		cmd, pids := family(t, "tree", "hold", "exit", "0")
		r, err := within(t, time.Second, cmd, opt)
		check(t, r, err, want{held: true})
		if !strings.HasPrefix(r.Stdout.String(), "ready\n") && !strings.Contains(r.Stdout.String(), "ready\n") {
			t.Errorf("output %q", r.Stdout)
		}
		mustBeDead(t, pids())
	})
	t.Run("escaped, limit", func(t *testing.T) {
		cmd, pids := family(t, "tree", "hold", "deaf")
		r, err := stopWhen(t, func() bool { return len(pids()) == 5 }, cmd, procgroup.WithContainment(procgroup.Group))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted, escalated: true, held: true})
		for _, pid := range pids() {
			killPid(pid)
		}
	})
	t.Run("escaped", func(t *testing.T) {
		cmd, pids := family(t, "tree", "hold", "exit", "3")
		r, err := within(t, time.Second, cmd, procgroup.WithContainment(procgroup.Group))
		check(t, r, err, want{code: 3, held: true})
		for _, pid := range pids() {
			killPid(pid) // the daemon: the group does not hold it
		}
	})
}

// SPEC 6.3, 6.20: a flood without a newline is counted exactly and kept in
// bounded memory, with and without its beginning, and every chunk of it is a heartbeat.
func TestFlood(t *testing.T) {
	for _, head := range []int{0, 1 << 20} {
		t.Run(strconv.Itoa(head), func(t *testing.T) { checkFlood(t, head) })
	}
}

func checkFlood(t *testing.T, head int) {
	const size = int64(128 << 20) // twice the bound of the heap
	peak := make(chan uint64)
	stop := make(chan struct{})
	runtime.GC()
	go func() {
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	r, err := within(t, longLimit, command("flood", strconv.FormatInt(size, 10)),
		procgroup.WithHead(head), procgroup.WithOutputLimit(size), procgroup.WithLimits(timeout.Config{Total: longLimit, Idle: slack}))
	close(stop)
	check(t, r, err, want{})
	for _, o := range []procgroup.Output{r.Stdout, r.Combined} {
		if kept := head + 1<<20; o.Total != size || o.Dropped != size-int64(kept) || len(o.Bytes()) != kept {
			t.Errorf("total %d, dropped %d, kept %d", o.Total, o.Dropped, len(o.Bytes()))
		}
		if !bytes.HasSuffix(o.Bytes(), []byte("0123456789abcdef")) {
			t.Error("the end is not what was written last")
		}
	}
	if most := <-peak; most > 64<<20 {
		t.Errorf("%d MiB of heap", most>>20)
	}
}

// SPEC 6.3: single bytes cost no more each when there are many.
func TestSingleBytes(t *testing.T) {
	const n = 30_000
	r, err := within(t, longLimit, command("bytes", strconv.Itoa(n)), procgroup.WithOutput(func(procgroup.Chunk) {}))
	check(t, r, err, want{})
	if r.Stdout.Total != n || r.Stdout.Dropped != 0 {
		t.Errorf("total %d, dropped %d", r.Stdout.Total, r.Stdout.Dropped)
	}
}

// SPEC 6.3: output that ends at the cap, one below and one above, and within a character.
func TestOutputAtTheCap(t *testing.T) {
	const text = "abcdé" // 6 bytes
	for _, tt := range []struct {
		limit   int
		want    string
		dropped int64
	}{
		{7, text, 0}, {6, text, 0}, {5, "bcdé", 1}, {2, "é", 4}, {1, "", 5}, {0, text, 0}, {-1, "", 6}, {math.MinInt, "", 6}, {math.MaxInt, text, 0},
	} {
		cmd := exec.Command("printf", "%s", text)
		r, err := within(t, time.Second, cmd, procgroup.WithMaxOutput(tt.limit))
		check(t, r, err, want{})
		for _, o := range []procgroup.Output{r.Stdout, r.Combined} {
			if o.String() != tt.want || o.Dropped != tt.dropped || o.Total != 6 || len(o.Bytes()) != 6-int(tt.dropped) {
				t.Errorf("limit %d: %q, dropped %d of %d", tt.limit, o, o.Dropped, o.Total)
			}
		}
		if r.Stderr.Total != 0 || r.Stderr.String() != "" || len(r.Stderr.Bytes()) != 0 {
			t.Errorf("stderr %+v", r.Stderr)
		}
	}
}

// Combined has both streams in the order of arrival.
func TestCombined(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "echo 1; read x; echo 2 >&2; read x; echo 3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := within(t, time.Second, cmd, procgroup.WithOutput(func(procgroup.Chunk) { _, _ = in.Write([]byte("\n")) })) // it may go on
	check(t, r, err, want{})
	if r.Stdout.String() != "1\n3\n" || r.Stderr.String() != "2\n" || r.Combined.String() != "1\n2\n3\n" {
		t.Errorf("%q, %q, %q", r.Stdout, r.Stderr, r.Combined)
	}
}

// stream is the index of a chunk's stream: 0 for stdout, 1 for stderr.
func stream(c procgroup.Chunk) int {
	if c.Stderr {
		return 1
	}
	return 0
}

// SPEC 6.3: capture is unbounded on request.
func TestUnlimitedOutput(t *testing.T) {
	const size = 8 << 20
	r, err := within(t, longLimit, command("flood", strconv.FormatInt(size, 10)), procgroup.WithMaxOutput(math.MaxInt))
	check(t, r, err, want{})
	if b := r.Stdout.Bytes(); len(b) != size || r.Stdout.Dropped != 0 || !bytes.Equal(b[:16], b[size-16:]) {
		t.Errorf("%d bytes kept", len(b))
	}
}

// SPEC 6.11: a callback that blocks, panics or exits its goroutine.
func TestCallback(t *testing.T) {
	t.Parallel()
	t.Run("gets everything", func(t *testing.T) {
		for try := 0; ; try++ {
			var mu sync.Mutex
			got, last := [2]string{}, [2]bool{}
			cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5; do echo $i; echo e$i >&2; sleep 0.01; done")
			r, err := within(t, time.Second, cmd, procgroup.WithOutput(func(c procgroup.Chunk) {
				mu.Lock()
				defer mu.Unlock()
				got[stream(c)] += string(c.Data)
				last[stream(c)] = last[stream(c)] || c.Last
				if c.Skipped != 0 {
					t.Errorf("%d bytes skipped", c.Skipped)
				}
			}))
			check(t, r, err, want{})
			if r.Skipped > 0 && try < 5 {
				continue // on a busy machine the callback did not run for a second after the end
			}
			mu.Lock()
			if got[0] != r.Stdout.String() || got[1] != r.Stderr.String() || !last[0] || !last[1] {
				t.Errorf("%q, %v, %d skipped", got, last, r.Skipped)
			}
			mu.Unlock()
			return
		}
	})
	t.Run("is slow", func(t *testing.T) {
		const size = 64 << 20
		for try := 0; ; try++ {
			var seen, skipped atomic.Int64
			r, err := within(t, longLimit, command("flood", strconv.FormatInt(size, 10)), procgroup.WithOutput(func(c procgroup.Chunk) {
				seen.Add(int64(len(c.Data)))
				skipped.Add(c.Skipped)
				time.Sleep(20 * time.Millisecond)
			}))
			check(t, r, err, want{})
			if seen.Load()+r.Skipped != size {
				t.Errorf("%d bytes seen, %d skipped, want %d", seen.Load(), r.Skipped, size)
			}
			if got := seen.Load() + skipped.Load(); got != size && try == 5 { // on a busy machine some come too late
				t.Errorf("%d bytes seen or skipped, want %d", got, size)
			} else if got == size || try == 5 {
				return
			}
		}
	})
	t.Run("blocks", func(t *testing.T) {
		cmd, pids := family(t, "tree", "exit", "0")
		release := make(chan struct{})
		calls := 0
		var mu sync.Mutex
		r, err := within(t, time.Second, cmd, procgroup.WithOutput(func(procgroup.Chunk) {
			mu.Lock()
			calls++
			mu.Unlock()
			<-release
		}))
		check(t, r, err, want{})
		mustBeDead(t, pids())
		close(release)
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if calls != 1 {
			t.Errorf("%d calls, some after the end", calls)
		}
	})
	t.Run("panics", func(t *testing.T) {
		cmd, pids := family(t, "tree", "deaf")
		r, err := within(t, time.Second, cmd, procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithOutput(func(procgroup.Chunk) { panic("callback") }))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if p := (*timeout.PanicError)(nil); !errors.As(err, &p) || p.Value != "callback" {
			t.Error(err)
		}
		mustBeDead(t, pids())
	})
	t.Run("panics at the end", func(t *testing.T) {
		r, err := calledAtTheEnd(func(called *atomic.Bool) (*procgroup.Result, error) {
			return within(t, time.Second, exec.Command("echo", "x"), procgroup.WithOutput(func(c procgroup.Chunk) {
				if c.Last {
					called.Store(true)
					panic("callback")
				}
			}))
		})
		if p := (*timeout.PanicError)(nil); !errors.As(err, &p) || r == nil || timeout.ExitCode(err) != r.ExitCode {
			t.Error(err, r)
		}
	})
	t.Run("panics after a limit", func(t *testing.T) {
		r, err := calledAtTheEnd(func(called *atomic.Bool) (*procgroup.Result, error) {
			return within(t, time.Second, command("deaf"), total(shortLimit, procgroup.WithOutput(func(c procgroup.Chunk) {
				if c.Last {
					called.Store(true)
					panic("callback")
				}
			}))...)
		})
		if p := (*timeout.PanicError)(nil); !errors.As(err, &p) || r.Reason != procgroup.TotalTimeout {
			t.Error(err, r)
		}
	})
	t.Run("exits its goroutine", func(t *testing.T) {
		r, err := within(t, time.Second, command("deaf"), procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithOutput(func(procgroup.Chunk) { runtime.Goexit() }))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if !errors.Is(err, timeout.ErrGoexit) {
			t.Error(err)
		}
	})
}

// calledAtTheEnd runs a command again where the machine is so busy that its callback did not run in the second after the end.
func calledAtTheEnd(run func(called *atomic.Bool) (*procgroup.Result, error)) (r *procgroup.Result, err error) {
	for range 5 {
		var called atomic.Bool
		if r, err = run(&called); called.Load() {
			break
		}
	}
	return r, err
}

// SPEC 6.3: both streams may end inside a character at once.
func TestCombinedEndsInsideCharacters(t *testing.T) {
	for _, script := range []string{
		`printf 'a\342\202'; printf 'b\360\237' >&2`,
		`printf 'a\342\202'; printf b >&2`,
		`printf a; printf 'b\360\237' >&2`,
	} {
		var seen atomic.Int64
		r, err := stopWhen(t, func() bool { return seen.Load() == 2 }, exec.Command("sh", "-c", script+"; exec sleep 60"), procgroup.WithAbortGrace(longLimit),
			procgroup.WithOutput(func(c procgroup.Chunk) {
				seen.Add(int64(bytes.Count(c.Data, []byte("a")) + bytes.Count(c.Data, []byte("b"))))
			}))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if got := r.Combined.String(); got != "ab" && got != "ba" { // as they arrived
			t.Errorf("%s: %q of %q", script, got, r.Combined.Bytes())
		}
	}
}

// SPEC 6.13: the longest silence is known whether or not a limit fired.
func TestLongestGap(t *testing.T) {
	t.Parallel()
	const pause = 6 * time.Second
	const about = pause / 2 // for what was read some time after it was written
	for _, tt := range []struct {
		name, script string
		at           timeout.Config
		least        time.Duration
	}{
		{"before the first", "sleep 6; echo a", timeout.Config{}, pause},
		{"between two", "echo a; sleep 6; echo b", timeout.Config{}, about},
		{"after the last", "echo a; sleep 6", timeout.Config{}, about},
		{"idle limit", "echo a; exec sleep 60", timeout.Config{Idle: pause}, pause},
		{"total limit", "sleep 6; while :; do echo a; sleep 0.05; done", timeout.Config{Total: 2 * pause}, pause},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := within(t, 2*pause, exec.Command("sh", "-c", tt.script), procgroup.WithLimits(tt.at), procgroup.WithKillGrace(-1))
			if r == nil {
				t.Fatal(err)
			}
			if r.LongestGap < tt.least || r.LongestGap > r.Elapsed {
				t.Errorf("%v of %v, want %v at least", r.LongestGap, r.Elapsed, tt.least)
			}
			// No idle limit fires after less than the result has. Any other gap of the error ends
			// with a beat, which comes a moment after the output that it is for.
			var stop *timeout.Error
			if errors.As(err, &stop) && stop.Kind == timeout.KindIdle && r.LongestGap < stop.LongestGap {
				t.Errorf("%v, in the error %v", r.LongestGap, stop.LongestGap)
			}
		})
	}
}
