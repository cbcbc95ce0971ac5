//go:build unix

package job_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 15.1, 15.2, 15.3, 15.6: one call starts a command, and others look, write, wait and learn how it
// has ended.
func TestJob(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("echo started; read x; echo got $x >&2; exit 7")
	if j.ID != 1 || s.Get(1) != j || s.Get(2) != nil || j.Args[0] != "sh" || j.Started.IsZero() {
		t.Errorf("%+v", j)
	}
	wait(t, j, job.WakeOutput, job.Until{Output: true})
	if diff := cmp.Diff(job.Piece{Data: []byte("started\n"), Next: 8}, j.Read(0, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wait(t, j, job.WakeSilence, job.Until{From: 8, Output: true, Silence: 10 * time.Millisecond})
	if s := j.Status(); s.Result != nil || s.Err != nil {
		t.Errorf("a result of a job that runs: %v, %v", s.Result, s.Err)
	}
	if n, _, err := j.Write(t.Context(), []byte("it\n")); n != 3 || err != nil { // it may have ended already
		t.Errorf("%d, %v", n, err)
	}
	wait(t, j, job.WakeMatch, job.Until{From: 8, Match: regexp.MustCompile("^got it$")})
	wait(t, j, job.WakeEnd, job.Until{})
	if diff := cmp.Diff(job.Piece{Data: []byte("got it\n"), Next: 15, Last: true}, j.Read(8, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended := j.Status()
	r, err := ended.Result, ended.Err
	if exit := (*exec.ExitError)(nil); ended.State != job.Ended || r.ExitCode != 7 || !errors.As(err, &exit) || r.Combined.Total != 15 || len(r.Combined.Bytes()) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// SPEC 6.23, 15.6: the status of a job that has ended says what of it runs on.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the processes are not listed on this system")
	}
	s := newJobs(t, &job.Set{})
	j := s.sh("sleep 1000 >/dev/null 2>&1 & echo $!; while read name </proc/$!/comm && [ $name != sleep ]; do :; done", procgroup.Stop{Orphans: true})
	wait(t, j, job.WakeEnd, job.Until{})
	pid := strings.TrimSpace(string(j.Read(0, 0).Data))
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(n, syscall.SIGKILL)
	got := j.Status()
	left := strings.Replace(got.Result.Leftovers(), ", and perhaps others", "", 1) // of a busy machine, which has cut the list
	if kept := got.Result.Kept.Processes; got.State != job.LeftBehind || len(kept) != 1 || kept[0].Pid != n || left != "Running on after the command: sleep (process "+pid+").\n" {
		t.Errorf("%+v, %q", got, left)
	}
}

// SPEC 3.24, 15.2: the caller's time ends a wait also while the pattern is matched with a line, which would take many
// minutes here, and a caller without time is answered.
func TestWaitForASlowMatch(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("head -c 60000 /dev/zero | tr '\\0' x")
	wait(t, j, job.WakeEnd, job.Until{})
	until := job.Until{Match: regexp.MustCompile(strings.Repeat("(?:x{0,30}){33}", 200) + "y")}
	for _, left := range []time.Duration{100 * time.Millisecond, 0} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		if got := j.Wait(ctx, until); got != job.WakeCaller {
			t.Errorf("a wait of %v: %v", left, got)
		}
		cancel()
	}
}

// SPEC 3.24: a pattern from outside is searched for in bounded time and memory, or refused at once.
func TestCompile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, want string }{
		{"^listening on .*:([0-9]+)$", ""},
		{"(?:x{0,30}){33}", ""},
		{strings.Repeat("é", 500), ""},
		{strings.Repeat("x", 1001), "pattern of 1001 bytes: want at most 1000"},
		{"(", "want a regular expression in RE2 syntax"},
		{strings.Repeat("(?:x{0,30}){33}", 60), "want fewer repetitions: at most 5000 characters, classes, operators and parentheses when"},
	} {
		re, err := job.Compile(c.pattern)
		switch {
		case c.want == "" && (err != nil || re.String() != c.pattern):
			t.Errorf("Compile(%q) = %v, %v", c.pattern, re, err)
		case c.want != "" && (re != nil || err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("Compile(%.20q) = %v, %v, want an error with %q", c.pattern, re, err, c.want)
		}
	}
}

// SPEC 15.4: a caller that writes to a job that has ended learns how it ended.
func TestWriteAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("exit 3")
	wait(t, j, job.WakeEnd, job.Until{})
	want := j.Status()
	if want.State != job.Ended || want.Result.ExitCode != 3 {
		t.Errorf("%+v", want)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for name, ctx := range map[string]context.Context{"in time": t.Context(), "done": done} {
		if n, status, err := j.Write(ctx, []byte("x")); n != 0 || err != nil || status != want {
			t.Errorf("%s: %d, %+v, %v", name, n, status, err)
		}
	}
	j.CloseInput()
	if n, status, err := j.Write(t.Context(), []byte("x")); n != 0 || err != nil || status != want {
		t.Errorf("after CloseInput: %d, %+v, %v", n, status, err)
	}
	if status, err := j.Interrupt(); err != nil || status != want {
		t.Errorf("Interrupt: %+v, %v", status, err)
	}
	j.Stop()
	if j.Status() != want {
		t.Errorf("%+v", j.Status())
	}
}

// SPEC 15.4: a write blocks no longer than its caller's time, and neither do those behind it.
func TestWriteBlocks(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("trap : INT; echo ready; sleep 1000 & wait; wc -c")
	wait(t, j, job.WakeOutput, job.Until{Output: true})
	const size = 10 << 20
	writes := func(p []byte, limit time.Duration) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		n, status, err := j.Write(ctx, p)
		if !errors.Is(err, context.DeadlineExceeded) || status.State != job.Running {
			t.Errorf("%d, %+v, %v", n, status, err)
		}
		return n
	}
	n := 0
	for n == 0 { // the limit may come before the first byte
		n = writes(make([]byte, size), 300*time.Millisecond)
	}
	if n == size {
		t.Errorf("%d bytes", n)
	}
	if m := writes(make([]byte, size-n), 100*time.Millisecond); m != 0 {
		t.Errorf("%d bytes more than a pipe holds", m)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.ErrUnsupported)
	if n, _, err := j.Write(ctx, []byte("x")); n != 0 || err != errors.ErrUnsupported {
		t.Errorf("%d, %v", n, err)
	}
	// Many at once: one has the turn, and the others wait no longer for it.
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() { writes(make([]byte, 100), 100*time.Millisecond) })
	}
	writers.Wait()
	// When the command reads, the rest can be written, and nothing is lost or doubled.
	if _, err := j.Interrupt(); err != nil {
		t.Error(err)
	}
	m, _, err := j.Write(t.Context(), make([]byte, size-n))
	if m != size-n || err != nil {
		t.Errorf("%d, %v", m, err)
	}
	j.CloseInput()
	wait(t, j, job.WakeEnd, job.Until{})
	if got := strings.TrimSpace(string(j.Read(int64(len("ready\n")), 0).Data)); got != strconv.Itoa(size) {
		t.Errorf("the command has read %q bytes, want %d; %+v", got, size, j.Status())
	}
}

// SPEC 15.4: a job that ends while it is written to answers.
func TestEndDuringAWrite(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("head -c 1000 >/dev/null; exit 5")
	n, status, err := j.Write(t.Context(), make([]byte, 10<<20))
	if n == 10<<20 || err != nil || status.State != job.Ended || status.Result.ExitCode != 5 {
		t.Errorf("%d, %+v, %v", n, status, err)
	}
}

// The command, or the caller, can close the input.
func TestClosedInput(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("exec <&-; echo closed; sleep 1000")
	wait(t, j, job.WakeOutput, job.Until{Output: true})
	n, status, err := j.Write(t.Context(), []byte("x"))
	for err == nil { // a child that another start has forked holds the pipe until it executes
		n, status, err = j.Write(t.Context(), []byte("x"))
	}
	if n != 0 || !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, syscall.EPIPE) || status.State != job.Running {
		t.Errorf("%d, %+v, %v", n, status, err)
	}
	// Now that is known, and takes no time.
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if n, status, err := j.Write(done, []byte("x")); n != 0 || !errors.Is(err, io.ErrClosedPipe) || status.State != job.Running {
		t.Errorf("%d, %+v, %v", n, status, err)
	}

	j = s.sh("cat; exit 6")
	if n, _, err := j.Write(t.Context(), []byte("all")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	j.CloseInput()
	j.CloseInput()
	wait(t, j, job.WakeEnd, job.Until{})
	if p := j.Read(0, 0); string(p.Data) != "all" || j.Status().Result.ExitCode != 6 {
		t.Errorf("%q, %+v", p.Data, j.Status())
	}

	// A write in progress ends.
	j = s.sh("sleep 1000")
	ended := make(chan error)
	go func() {
		_, _, err := j.Write(context.Background(), make([]byte, 10<<20))
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond)
	j.CloseInput()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// SPEC 2.9: what a job needs for itself is refused with the key and what to do, and nothing is started.
// For a command that cannot be started the error is that of procgroup.
func TestStartFails(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{MaxJobs: 1})
	for key, set := range map[string]func(*exec.Cmd){
		"cmd.Stdin":  func(c *exec.Cmd) { c.Stdin = strings.NewReader("") },
		"cmd.Stdout": func(c *exec.Cmd) { c.Stdout = os.Stdout },
		"cmd.Stderr": func(c *exec.Cmd) { c.Stderr = os.Stderr },
	} {
		cmd := s.command("true")
		set(cmd)
		_, err := s.Start(t.Context(), cmd)
		if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != key || !strings.Contains(bad.Accepted, "nil; use ") || cmd.Process != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := s.Start(t.Context(), s.command("no-such-command")); timeout.ExitCode(err) != 127 {
		t.Errorf("%v", err)
	}
	if _, err := s.Start(t.Context(), s.command("true"), procgroup.Stop{Signal: syscall.Signal(0)}); !errors.As(err, new(*timeout.ConfigError)) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Start(ctx, s.command("true")); !errors.Is(err, timeout.ErrAborted) {
		t.Errorf("%v", err)
	}
	bad := job.Set{MaxOutput: 11, MaxBytes: 10}
	if _, err := bad.Start(t.Context(), s.command("true")); err == nil || !strings.Contains(err.Error(), "MaxOutput") {
		t.Errorf("%v", err)
	}
	if len(s.List()) != 0 {
		t.Errorf("%v", s.List())
	}
	wait(t, s.sh("true"), job.WakeEnd, job.Until{}) // there is room
	large := newJobs(t, &job.Set{MaxOutput: 100 << 20})
	wait(t, large.sh("true"), job.WakeEnd, job.Until{}) // as much as one job may keep may be kept
}

// SPEC 15.5: running jobs stay, and of the ended ones the first goes, with its output.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{MaxJobs: 3, MaxOutput: 100, MaxBytes: 1000})
	a, b, c := s.sh("sleep 1000"), s.sh("echo b"), s.sh("echo c; read x")
	wait(t, b, job.WakeEnd, job.Until{})
	c.CloseInput()
	wait(t, c, job.WakeEnd, job.Until{})
	d := s.sh("sleep 1000")
	if diff := cmp.Diff([]int{1, 3, 4}, ids(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := b.Read(0, 0); p.Dropped != 2 || !p.Last || s.Get(2) != nil || b.Status().State != job.Ended {
		t.Errorf("%+v, %+v", p, b.Status())
	}
	if p := c.Read(0, 0); string(p.Data) != "c\n" {
		t.Errorf("%+v", p)
	}
	e := s.sh("sleep 1000")
	if _, err := s.Start(t.Context(), s.command("true")); !errors.Is(err, job.ErrFull) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]int{1, 4, 5}, ids(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, j := range []*job.Job{a, d, e} {
		if j.Status().State != job.Running {
			t.Errorf("job %d: %+v", j.ID, j.Status())
		}
	}
}

func ids(s *jobs) (all []int) {
	for _, j := range s.List() {
		all = append(all, j.ID)
	}
	return all
}

// What belongs to the job does not take the place of what the caller has set, in whichever form.
func TestOptionsByPointer(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	for name, o := range map[string]procgroup.Option{"a value": procgroup.Capture{Limit: 3}, "a pointer": &procgroup.Capture{Limit: 3}} {
		j := s.sh("while :; do echo one; done", o)
		wait(t, j, job.WakeEnd, job.Until{})
		if r := j.Status().Result; r.Reason != procgroup.TooMuchOutput {
			t.Errorf("%s: %v", name, r.Reason)
		}
	}
}
