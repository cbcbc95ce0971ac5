//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
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
