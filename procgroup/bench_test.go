//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Spawn and wait, against os/exec alone.
func BenchmarkSpawn(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(path).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exec with buffers", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command(path)
			cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		b.Run(string(c), func(b *testing.B) {
			for b.Loop() {
				if _, err := procgroup.Run(context.Background(), exec.Command(path), procgroup.WithContainment(c)); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}

// A flood, against a kernel that throws it away, and a buffer.
func BenchmarkFlood(b *testing.B) {
	const size = 1 << 30
	flood := func() *exec.Cmd {
		return exec.Command("head", "-c", strconv.Itoa(size), "/dev/zero")
	}
	b.Run("splice", func(b *testing.B) {
		b.SetBytes(size)
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer null.Close()
		for b.Loop() {
			cmd := flood()
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, 1<<20)
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			w.Close()
			for {
				n, err := unix.Splice(int(r.Fd()), nil, int(null.Fd()), nil, 1<<20, 0)
				if n == 0 || err != nil {
					break
				}
			}
			r.Close()
			_ = cmd.Wait()
		}
	})
	b.Run("procgroup", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			r, err := procgroup.Run(context.Background(), flood())
			if err != nil || r.Stdout.Total != size {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("procgroup with a writer", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			cmd := flood()
			cmd.Stdout = writerFunc(func(p []byte) (int, error) { return len(p), nil })
			if _, err := procgroup.Run(context.Background(), cmd); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("procgroup with a callback", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if _, err := procgroup.Run(context.Background(), flood(), procgroup.WithOutput(func(procgroup.Chunk) {})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("buffer", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			cmd := flood()
			cmd.Stdout = new(bytes.Buffer)
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Writes of single bytes.
func BenchmarkSingleBytes(b *testing.B) {
	const n = 100_000
	run := func(b *testing.B, f func(cmd *exec.Cmd) error) {
		b.SetBytes(n)
		for b.Loop() {
			if err := f(command("bytes", strconv.Itoa(n))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("discard", func(b *testing.B) {
		run(b, func(cmd *exec.Cmd) error {
			cmd.Stdout = struct{ io.Writer }{io.Discard}
			return cmd.Run()
		})
	})
	b.Run("procgroup", func(b *testing.B) {
		run(b, func(cmd *exec.Cmd) error {
			_, err := procgroup.Run(context.Background(), cmd)
			return err
		})
	})
}

// From the abort to the result, by the number of descendants, against a bare kill of the
// group, and of a control group, until it is empty.
func BenchmarkKill(b *testing.B) {
	for _, n := range []int{1, 50, 200} {
		script := fmt.Sprintf("i=1; while [ $i -lt %d ]; do sleep 120 >/dev/null 2>&1 & i=$((i+1)); done; echo x; exec sleep 120", n)
		b.Run(fmt.Sprint(n, "/kill"), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				cmd := exec.Command("sh", "-c", script)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				out, _ := cmd.StdoutPipe()
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				_, _ = out.Read(make([]byte, 1))
				begun := time.Now()
				_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
				_ = cmd.Wait()
				for groupAlive(cmd.Process.Pid) { // kill would find zombies until they are reaped
				}
				took += time.Since(begun)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-to-empty")
		})
		b.Run(fmt.Sprint(n, "/cgroup.kill"), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				took += killByHand(b, script)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-to-empty")
		})
		for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup} {
			b.Run(fmt.Sprint(n, "/", c), func(b *testing.B) {
				var took time.Duration
				for b.Loop() {
					ready := make(chan struct{}, 1)
					ctx, cancel := context.WithCancel(context.Background())
					p, err := procgroup.Start(ctx, exec.Command("sh", "-c", script), procgroup.WithContainment(c),
						procgroup.WithOutput(func(c procgroup.Chunk) {
							select {
							case ready <- struct{}{}:
							default:
							}
						}))
					if err != nil {
						b.Skip(err)
					}
					<-ready
					begun := time.Now()
					cancel()
					r, _ := p.Wait()
					took += time.Since(begun)
					if len(r.Survivors) > 0 {
						b.Fatal(r.Survivors)
					}
				}
				b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-to-empty")
			})
		}
	}
}

func groupAlive(pgid int) bool {
	for _, s := range processes() {
		if s.pgrp == pgid && !s.dead() {
			return true
		}
	}
	return false
}

// killByHand starts the script in a control group, kills that, and waits for it to be
// empty, with nothing else around it.
func killByHand(b *testing.B, script string) time.Duration {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		b.Skip(err)
	}
	_, path, _ := strings.Cut(string(own), "0::")
	path, _, _ = strings.Cut(path, "\n")
	mounts, _ := os.ReadFile("/proc/mounts")
	var root string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			root = f[1]
		}
	}
	dir, err := os.MkdirTemp(filepath.Join(root, path), "bench")
	if err != nil {
		b.Skip("needs root or a delegated cgroup v2: ", err)
	}
	defer os.Remove(dir)
	fd, err := unix.Open(dir, unix.O_PATH, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, UseCgroupFD: true, CgroupFD: fd}
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Skip(err)
	}
	_, _ = out.Read(make([]byte, 1))
	begun := time.Now()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait()
	for {
		events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil || bytes.Contains(events, []byte("populated 0")) {
			return time.Since(begun)
		}
		runtime.Gosched()
	}
}

// What it costs to look for work while 200 commands say nothing, or next to nothing, so that they
// live on: an iteration is 10 s, in which each is looked at twice, as its idle limit is 30 s.
func BenchmarkActivity(b *testing.B) {
	const commands, limit, stretch = 200, 30 * time.Second, 10 * time.Second
	used := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, c := range []procgroup.Containment{procgroup.Descendants, procgroup.Cgroup} {
		for _, activity := range []procgroup.Activity{{}, {CPU: true}, {CPU: true, IO: true}} {
			b.Run(fmt.Sprintf("%v/cpu=%v/io=%v", c, activity.CPU, activity.IO), func(b *testing.B) {
				ctx, cancel := context.WithCancel(b.Context())
				var all []*procgroup.Process
				defer func() {
					cancel()
					for _, p := range all {
						_, _ = p.Wait()
					}
				}()
				for range commands {
					p, err := procgroup.Start(ctx, exec.Command("perl", "-e", "$|=1; while (1) { sleep 25; print '.' }"), procgroup.WithContainment(c),
						activity, procgroup.WithLimits(timeout.Config{Idle: limit}))
					if err != nil {
						b.Skip(err)
					}
					all = append(all, p)
				}
				var busy, in time.Duration
				for b.Loop() {
					begun, before := time.Now(), used()
					time.Sleep(stretch)
					busy, in = busy+used()-before, in+time.Since(begun)
				}
				b.ReportMetric(100*busy.Seconds()/in.Seconds(), "%core")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// What it costs to find out whether 200 silent commands wait for input: an iteration is 10 s in which nothing is started
// or stopped, and what is counted is the time of this process alone.
func BenchmarkInputLooks(b *testing.B) {
	const commands, stretch = 200, 10 * time.Second
	used := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, script := range []string{"exec cat", "exec sleep 600"} {
		b.Run(script, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var all []*procgroup.Process
			defer func() {
				cancel()
				for _, p := range all {
					_, _ = p.Wait()
				}
			}()
			for range commands {
				cmd := exec.Command("sh", "-c", script)
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				defer in.Close()
				p, err := procgroup.Start(ctx, cmd)
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, p)
			}
			time.Sleep(2 * time.Second) // the first looks find all threads; those after them, that nothing has run
			var busy, in time.Duration
			for b.Loop() {
				begun, before := time.Now(), used()
				time.Sleep(stretch)
				busy, in = busy+used()-before, in+time.Since(begun)
			}
			b.ReportMetric(100*busy.Seconds()/in.Seconds(), "%core")
			b.ReportMetric(0, "ns/op")
		})
	}
}
