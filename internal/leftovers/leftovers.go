// Package leftovers finds goroutines and, on systems with /proc, processes that tests have left
// behind. Tests of all modules share it.
package leftovers

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var marks atomic.Int64

// Mark returns a new assignment, of the form KEY=value, for the environment of a process. With it,
// None and With find the process and the processes that inherit its environment.
func Mark() string {
	return fmt.Sprintf("LEFTOVERS_OF=%d.%d", os.Getpid(), marks.Add(1))
}

// None waits for the processes with the mark to end, and fails the test if one is still running
// after 20 s.
func None(t testing.TB, mark string) {
	t.Helper()
	var left []string
	pause := 5 * time.Millisecond // grows each time, because a look at all processes is work
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(pause) {
		pause = min(2*pause, 160*time.Millisecond)
		if left = With(mark); len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %q", left)
}

// With returns the command lines of the processes that have the mark in their environment. On a
// system without /proc it returns nil.
func With(mark string) (found []string) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // filepath.Glob would list each process's directory too
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			line, _ := os.ReadFile("/proc/" + name + "/cmdline")
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
