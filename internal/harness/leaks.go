package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// Leaks counts the goroutines and the open descriptors of this process. left describes what the process has in excess
// of these counts when left is called, or its child processes and all others with the environment of the suite. left
// returns "" if there is nothing. Call it repeatedly, because goroutines and processes may be about to end. Descriptors
// and processes are checked only on systems with /proc.
func Leaks() (left func() string) {
	goroutines, files := runtime.NumGoroutine(), len(openFiles())
	return func() string {
		// Processes come first: the goroutines that wait for them end after them.
		parent := fmt.Appendf(nil, "\nPPid:\t%d\n", os.Getpid())
		if all := processes(fmt.Sprintf("%s=%d", suiteEnv, os.Getpid()), parent); len(all) > 0 {
			return fmt.Sprintf("processes %q", all)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			buf := make([]byte, 1<<20)
			return fmt.Sprintf("%d goroutines, %d before:\n%s", n, goroutines, buf[:runtime.Stack(buf, true)])
		}
		if now := openFiles(); len(now) > files {
			return fmt.Sprintf("descriptors %q, %d before", now, files)
		}
		return ""
	}
}

// openFiles returns the files of the open descriptors, without those of the runtime's poller, which stay open after its
// first use.
func openFiles() (found []string) {
	list, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range list {
		if to, err := os.Readlink(fd); err == nil && !strings.HasPrefix(to, "anon_inode:[event") {
			found = append(found, to)
		}
	}
	return found
}

var marks atomic.Int64

// Mark returns a new assignment, of the form KEY=value, for the environment of a process. With it, None finds the
// process and the processes that inherit its environment.
func Mark() string { return fmt.Sprintf("%s=%d.%d", MarkEnv, os.Getpid(), marks.Add(1)) }

// MarkEnv is the variable of a [Mark].
const MarkEnv = "HARNESS_MARK"

// None fails the test if a process with the mark is still running after a minute. Without /proc it finds none.
func None(t testing.TB, mark string) {
	t.Helper()
	Eventually(t, "the processes with "+mark+" to end", func() bool { return len(processes(mark, nil)) == 0 })
}

// processes returns the ids and command lines of the processes that have the assignment env in their environment, or
// whose status contains status, unless that is nil. The command line of a zombie is empty.
func processes(env string, status []byte) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		have, _ := os.ReadFile(dir + "/environ")
		is := bytes.Contains(append([]byte{0}, have...), []byte("\x00"+env+"\x00"))
		if !is && status != nil {
			text, _ := os.ReadFile(dir + "/status")
			is = bytes.Contains(text, status)
		}
		if is {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
