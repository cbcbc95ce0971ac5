package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Leaks counts the goroutines and the open descriptors of this process. left describes what the process has in excess
// of these counts when left is called, or its child processes and all others with the environment of the suite. left
// returns "" if there is nothing. Call it repeatedly, because goroutines and processes may be about to end. Descriptors
// and processes are checked only on systems with /proc.
func Leaks() (left func() string) {
	goroutines, files := runtime.NumGoroutine(), len(openFiles())
	return func() string {
		// Processes come first: the goroutines that wait for them end after them.
		if all := processes(); len(all) > 0 {
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

// processes returns the ids and command lines of this process's children, and of all processes with the environment of
// the suite. The command line of a zombie is empty.
func processes() (found []string) {
	parent := fmt.Appendf(nil, "\nPPid:\t%d\n", os.Getpid())
	suite := fmt.Appendf(nil, "\x00%s=%d\x00", suiteEnv, os.Getpid())
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		status, _ := os.ReadFile(dir + "/status")
		env, _ := os.ReadFile(dir + "/environ")
		if bytes.Contains(status, parent) || bytes.Contains(append([]byte{0}, env...), suite) {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
