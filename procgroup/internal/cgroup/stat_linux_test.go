package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

// SPEC 6.21: what the controllers of a control group count, and nothing where there is none. Few machines have all
// of them, so the files are made up.
func TestCount(t *testing.T) {
	const bare = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 0\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  Total
	}{
		"nothing":        {nil, Total{}},
		"no controllers": {map[string]string{"cpu.stat": bare}, Total{CPU: ptr(1500 * time.Microsecond)}},
		"all": {map[string]string{
			"cpu.stat":      bare + "nr_periods 5\nnr_throttled 4\nthrottled_usec 300000\nnr_bursts 0\nburst_usec 0\n",
			"memory.peak":   "104857600\n",
			"memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n",
			"pids.peak":     "7\n",
			"io.stat":       "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=1 wbytes=2 rios=1 wios=1\n",
		}, Total{
			CPU: ptr(1500 * time.Microsecond), Throttled: ptr(300 * time.Millisecond), Memory: ptr(int64(100 << 20)),
			Processes: ptr(int64(7)), Read: ptr(int64(4097)), Written: ptr(int64(8194)),
		}},
		"zeros":                   {map[string]string{"pids.peak": "0\n", "io.stat": ""}, Total{Processes: ptr(int64(0)), Read: ptr(int64(0)), Written: ptr(int64(0))}},
		"no numbers":              {map[string]string{"memory.peak": "max\n", "pids.peak": "\n", "cpu.stat": "usage_usec\nthrottled_usec x\n"}, Total{}},
		"killed for want":         {map[string]string{"memory.events": "oom 1\noom_kill 1\n"}, Total{Starved: true}},
		"killed as a group":       {map[string]string{"memory.events": "oom 1\noom_kill 3\noom_group_kill 1\n"}, Total{Starved: true}},
		"at its own limit":        {map[string]string{"memory.events": "oom_kill 1\n", "memory.events.local": "oom 1\noom_kill 0\n"}, Total{Starved: true, AtLimit: true}},
		"at a limit around it":    {map[string]string{"memory.events": "oom 1\noom_kill 1\n", "memory.events.local": "oom 0\noom_kill 1\n"}, Total{Starved: true}},
		"nothing was killed":      {map[string]string{"memory.events": "oom 1\noom_kill 0\n", "memory.events.local": "oom 1\noom_kill 0\n"}, Total{}},
		"only reached the limit":  {map[string]string{"memory.events": "max 400\noom 1\noom_kill 0\n"}, Total{}},
		"counted by another name": {map[string]string{"memory.events": "oom_group_kill 1\n"}, Total{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.count()
			if diff := cmp.Diff(tc.want, c.Total()); diff != "" {
				t.Error(diff)
			}
			for file := range tc.files { // without a descriptor it cannot be read either
				if err := os.Remove(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				c.count()
				if diff := cmp.Diff(tc.want, c.Total()); diff != "" {
					t.Errorf("after %s could not be read: %s", file, diff)
				}
			}
		})
	}
}

func TestParseIOStat(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0,
		"8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=7 dios=1\n8:16 \n": 1459200 + 314773504,
		"254:0 rbytes=1 wbytes=2\n8:0 rbytes=3 wbytes=4 cost.usage=9\n":                  10,
	} {
		if read, written := parseIOStat([]byte(text)); read+written != want {
			t.Errorf("%q: %d, want %d", text, read+written, want)
		}
	}
}
