//go:build unix

package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const sec = time.Second

// A world has jobs that run on simulated machines, in simulated time.
type world struct {
	*job.Set
	*testing.T
	machines []*simulate.Machine
}

// inWorld runs f in a bubble, and ends what is left.
func inWorld(t *testing.T, set *job.Set, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Set: set, T: t}
		f(w)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range w.machines {
			for _, wrong := range m.Off() {
				t.Error(wrong)
			}
		}
	})
}

func (w *world) start(ctx context.Context, s simulate.Script, opts ...procgroup.Option) *job.Job {
	w.Helper()
	m := simulate.New(s)
	w.machines = append(w.machines, m)
	j, err := w.Start(machine.With(ctx, m), &exec.Cmd{Path: "/simulated/tool", Args: []string{"tool"}}, opts...)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

func write(n int) simulate.Step           { return simulate.Step{Do: simulate.Write, FD: 1, N: n} }
func sleep(d time.Duration) simulate.Step { return simulate.Step{Do: simulate.Sleep, D: d} }
func exit(code int) simulate.Step         { return simulate.Step{Do: simulate.Exit, N: code} }
func every(d time.Duration) (s simulate.Script) { // writes a byte, for an hour
	for range time.Hour / d {
		s = append(s, write(1), sleep(d))
	}
	return s
}

// after demands that f returns after d, to the nanosecond.
func after(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	begun := time.Now()
	if f(); time.Since(begun) != d {
		t.Errorf("it took %v, want %v", time.Since(begun), d)
	}
}

// SPEC 15.1: a job is no part of the execution that starts it. Its output is no heartbeat there, and the limits there do not
// stop it; but a wait for it sees it live.
func TestJobIsNoPartOfTheCall(t *testing.T) {
	inWorld(t, &job.Set{}, func(w *world) {
		type key struct{}
		values := make(chan any, 1)
		hooks := timeout.Hooks{Started: func(ctx context.Context, _ timeout.Snapshot) { values <- ctx.Value(key{}) }}
		var j *job.Job
		after(w.T, 6*sec, func() {
			err := timeout.Run(context.WithValue(context.Background(), key{}, "kept"), func(ctx context.Context) error {
				j = w.start(ctx, every(sec), procgroup.WithOptions(timeout.WithHooks(hooks)))
				<-ctx.Done()
				return context.Cause(ctx)
			}, timeout.Config{Idle: 6 * sec})
			if !errors.Is(err, timeout.ErrIdle) {
				w.Error(err)
			}
		})
		if v := <-values; v != "kept" || j.Status().State != job.Running {
			w.Errorf("the value is %v; %+v", v, j.Status())
		}
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*sec+1)
			defer cancel()
			if got := j.Wait(ctx, job.Until{}); got != job.WakeCaller || heartbeat.FromContext(ctx).Count() < 9 {
				w.Errorf("%v, %d beats", got, heartbeat.FromContext(ctx).Count())
			}
			return nil
		}, timeout.Config{Idle: 2 * sec})
		if err != nil {
			w.Error(err)
		}
	})
}

// SPEC 15.5: an ended job that nobody looks at goes, to the nanosecond, and a running one does not. A look keeps it for as
// long again.
func TestRetention(t *testing.T) {
	const retention = time.Minute
	for name, use := range map[string]func(*job.Job){
		"Read":     func(j *job.Job) { j.Read(0, 0) },
		"ReadText": func(j *job.Job) { j.ReadText(0, 0) },
		"Wait":     func(j *job.Job) { j.Wait(context.Background(), job.Until{}) },
		"Write":    func(j *job.Job) { _, _, _ = j.Write(context.Background(), []byte("x")) },
		"nothing":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, &job.Set{Retention: retention}, func(w *world) {
				runs := w.start(context.Background(), simulate.Script{sleep(time.Hour)})
				ended := w.start(context.Background(), simulate.Script{write(2), sleep(sec)})
				time.Sleep(sec)
				synctest.Wait()
				for range 3 {
					if use != nil {
						time.Sleep(retention - 1)
						synctest.Wait()
						use(ended)
					}
				}
				time.Sleep(retention - 1)
				synctest.Wait()
				if w.Get(ended.ID) != ended {
					w.Error("gone too early")
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if w.Get(ended.ID) != nil {
					w.Error("still there")
				}
				if p := ended.Read(0, 0); p.Dropped != 2 || !p.Last {
					w.Errorf("%+v", p)
				}
				if w.Get(runs.ID) != runs || runs.Status().State != job.Running {
					w.Errorf("%+v", runs.Status())
				}
			})
		})
	}
}

// SPEC 15.5: Stop and Close ask the whole tree to end, and kill it after the grace; an option of Start overrides that of the
// set.
func TestStopsInTime(t *testing.T) {
	deaf := simulate.Script{{Do: simulate.Ignore, Signal: 15}, {Do: simulate.Fork, Script: simulate.Script{sleep(time.Hour)}}, sleep(time.Hour)}
	handles := simulate.Script{{Do: simulate.Trap, Signal: 15, Script: simulate.Script{sleep(sec), exit(0)}}, sleep(time.Hour)}
	for name, tt := range map[string]struct {
		script    simulate.Script
		opts      []procgroup.Option
		after     time.Duration
		escalated bool
	}{
		"in the delay":        {handles, nil, sec, false},
		"after the delay":     {deaf, nil, 5 * sec, true},
		"no delay":            {handles, []procgroup.Option{procgroup.Stop{AbortDelay: -1}}, 0, false},
		"a delay of its own":  {deaf, []procgroup.Option{procgroup.Stop{AbortDelay: 3 * sec}}, 3 * sec, true},
		"a grace is no delay": {deaf, []procgroup.Option{procgroup.Stop{Grace: 3 * sec}}, 5 * sec, true},
	} {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, new(job.Set), func(w *world) {
					j := w.start(context.Background(), tt.script, tt.opts...)
					synctest.Wait()
					var cause error = timeout.ErrAborted
					after(w.T, tt.after, func() {
						if closes {
							cause = job.ErrClosed
							if err := w.Close(); err != nil {
								w.Error(err)
							}
							return
						}
						j.Stop()
						j.Wait(context.Background(), job.Until{})
					})
					r, err := j.Status().Result, j.Status().Err
					if r == nil || r.Reason != procgroup.Aborted || r.ExitCode != 130 || !errors.Is(err, cause) || r.Escalated != tt.escalated {
						w.Errorf("%+v, %v", r, err)
					}
					if diff := cmp.Diff(job.Ended, j.Status().State); diff != "" {
						w.Error(diff)
					}
				})
			})
		}
	}
}

// SPEC 3.12, 6.11, 15.5: while the file system of the directory does not answer, the call and the set end the start of a job.
func TestHungStart(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(set *job.Set, cancel func())
		want error
	}{
		"the call":                 {func(_ *job.Set, cancel func()) { cancel() }, timeout.ErrAborted},
		"the deadline of the call": {func(*job.Set, func()) { time.Sleep(time.Second) }, timeout.ErrTotal},
		"the set":                  {func(set *job.Set, _ func()) { _ = set.Close() }, job.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: t.TempDir()}
				release := make(chan struct{})
				defer close(release)
				patient.Within(0, [2]string{cmd.Dir, cmd.Path}, func() { <-release })
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				var set job.Set
				ended := make(chan struct{})
				time.AfterFunc(time.Second, func() {
					tt.end(&set, cancel)
					close(ended)
				})
				failed := make(chan error, 1)
				go func() {
					_, err := set.Start(ctx, cmd)
					failed <- err
				}()
				hung := time.NewTimer(time.Minute)
				defer hung.Stop()
				select {
				case err := <-failed:
					if !errors.Is(err, tt.want) || cmd.Process != nil {
						t.Error(err)
					}
				case <-hung.C:
					panic("the start hangs")
				}
				<-ended
			})
		})
	}
}

// A slowMachine ends the call that starts a command while the command is being started.
type slowMachine struct {
	*simulate.Machine
	end func()
}

func (m slowMachine) Start(ctx context.Context, cmd *exec.Cmd) (proctree.Tree, error) {
	tree, err := m.Machine.Start(ctx, cmd)
	m.end()
	time.Sleep(sec)
	return tree, err
}

// SPEC 15.1: a job that has been started runs on, also if the call ends before Start has returned.
func TestCallEndsDuringTheStart(t *testing.T) {
	inWorld(t, new(job.Set), func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		m := simulate.New(simulate.Script{sleep(time.Minute), exit(3)})
		w.machines = append(w.machines, m)
		j, err := w.Start(machine.With(ctx, slowMachine{m, cancel}), &exec.Cmd{Path: "/simulated/tool", Args: []string{"tool"}})
		if err != nil {
			w.Fatal(err)
		}
		j.Wait(context.Background(), job.Until{})
		if r := j.Status().Result; r == nil || r.ExitCode != 3 {
			w.Errorf("%+v", r)
		}
	})
}

// SPEC 15.1: a hook of a job may start a command after the call that started the job has ended.
func TestHookStartsACommand(t *testing.T) {
	inWorld(t, new(job.Set), func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		cmd := &exec.Cmd{Path: "/bin/none", Args: []string{"none"}, Dir: w.TempDir()}
		release := make(chan struct{})
		patient.Within(0, [2]string{cmd.Dir, cmd.Path}, func() { <-release })
		started := make(chan error, 1)
		hooks := timeout.Hooks{Finished: func(ctx context.Context, _ timeout.Snapshot) {
			_, err := procgroup.Start(machine.With(context.WithoutCancel(ctx), nil), cmd)
			started <- err
		}}
		j := w.start(ctx, simulate.Script{sleep(sec), exit(0)}, procgroup.WithOptions(timeout.WithHooks(hooks)))
		cancel()
		j.Wait(context.Background(), job.Until{})
		time.Sleep(sec)
		close(release)
		if err := <-started; !errors.Is(err, fs.ErrNotExist) {
			w.Error(err)
		}
	})
}
