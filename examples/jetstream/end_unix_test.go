//go:build unix

package main

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends the program and all its workers. The workers also end when the program is killed.
func TestEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signal syscall.Signal
		code   int
	}{
		"Ctrl-C": {syscall.SIGINT, 130}, "SIGKILL": {syscall.SIGKILL, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, _ := command(t, tree(t, 400)) // more than are done before the signal
			cmd.Stdout = nil
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var workers []int
			process := regexp.MustCompile(`worker \d is process (\d+)`)
			for lines := bufio.NewReader(out); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if m := process.FindStringSubmatch(line); m != nil {
					pid, _ := strconv.Atoi(m[1])
					workers = append(workers, pid)
				}
				if strings.Contains(line, "killed (SIGKILL)") { // one second before the other is stuck
					go io.Copy(io.Discard, lines)
					break
				}
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if test.signal == syscall.SIGINT {
				nothingLeft(t, cmd)
			}
			for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				left := 0
				for _, pid := range workers {
					if syscall.Kill(pid, 0) == nil {
						left++
					}
				}
				if left == 0 {
					return
				}
				if time.Since(begun) > 30*time.Second {
					t.Fatalf("%d of the processes %v are left", left, workers)
				}
			}
		})
	}
}
