//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
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
				if _, err := procgroup.Run(context.Background(), exec.Command(path), c); err != nil {
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

// shareOf starts 200 commands and reports the share of a core that this process uses while they run: an iteration is 10 s in
// which nothing is started or stopped.
func shareOf(b *testing.B, start func(ctx context.Context) (*procgroup.Process, error)) {
	const commands, stretch = 200, 10 * time.Second
	used := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	ctx, cancel := context.WithCancel(b.Context())
	var all []*procgroup.Process
	defer func() {
		cancel()
		for _, p := range all {
			_, _ = p.Wait()
		}
	}()
	for range commands {
		p, err := start(ctx)
		if err != nil {
			b.Skip(err)
		}
		all = append(all, p)
	}
	time.Sleep(2 * time.Second) // the first looks for input find all threads; those after them, that nothing has run
	var busy, in time.Duration
	for b.Loop() {
		begun, before := time.Now(), used()
		time.Sleep(stretch)
		busy, in = busy+used()-before, in+time.Since(begun)
	}
	b.ReportMetric(100*busy.Seconds()/in.Seconds(), "%core")
	b.ReportMetric(0, "ns/op")
}

// What it costs to look for work while commands say nothing, or next to nothing, so that they live on: each is looked at
// twice in 10 s, as its idle limit is 30 s.
func BenchmarkActivity(b *testing.B) {
	for _, c := range []procgroup.Containment{procgroup.Descendants, procgroup.Cgroup} {
		for _, activity := range []procgroup.Activity{{}, {CPU: true}, {CPU: true, IO: true}} {
			b.Run(fmt.Sprintf("%v/cpu=%v/io=%v", c, activity.CPU, activity.IO), func(b *testing.B) {
				shareOf(b, func(ctx context.Context) (*procgroup.Process, error) {
					silent := exec.Command("perl", "-e", "$|=1; while (1) { sleep 25; print '.' }")
					return procgroup.Start(ctx, silent, c, activity, procgroup.Limits{Idle: 30 * time.Second})
				})
			})
		}
	}
}

// What it costs to find out whether silent commands wait for input.
func BenchmarkInputLooks(b *testing.B) {
	for _, script := range []string{"exec cat", "exec sleep 600"} {
		b.Run(script, func(b *testing.B) {
			shareOf(b, func(ctx context.Context) (*procgroup.Process, error) {
				cmd := exec.Command("sh", "-c", script)
				in, err := cmd.StdinPipe()
				if err != nil {
					return nil, err
				}
				b.Cleanup(func() { in.Close() })
				return procgroup.Start(ctx, cmd)
			})
		})
	}
}
