package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var marks atomic.Int64

// newMark returns a variable for the environment of a process. noneLeft finds the process by it, and
// all that the process has started.
func newMark() string {
	return fmt.Sprintf("LEFTOVERS_OF=%d.%d", os.Getpid(), marks.Add(1))
}

// noneLeft waits for marked processes to end, and fails the test if one stays.
func noneLeft(t testing.TB, mark string) {
	t.Helper()
	var left []string
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if left = marked(mark); len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %q", left)
}

// marked returns the command lines of the processes that have the mark in their environment, where
// the system has /proc.
func marked(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
