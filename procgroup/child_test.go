//go:build linux

package procgroup_test

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// forever is how long a child lives that nobody ends: long enough for any test, and an
// end for those that a failing test leaves behind.
const forever = 2 * time.Minute

// modes is what the test binary can be, by name, and hosts is what it can be that runs commands with this package. They
// get the arguments and return the exit code.
var modes, hosts map[string]func(args []string) int

func init() {
	modes = map[string]func(args []string) int{
		"exit":    func(a []string) int { return atoi(a[0]) },
		"deaf":    deaf,
		"handler": handler,
		"tree":    tree,
		"fork":    fork,
		"zombie":  zombie,
		"stopped": stopped,
		"hop":     hop,
		"flood":   flood,
		"bytes":   singleBytes,
		"print":   printText,
		"busy":    busy,
		"count":   count,
		"echo":    echo,
		"hang":    hang,
		"quit":    quit,
	}
	hosts = map[string]func(args []string) int{
		"run":      runModeRun,
		"attach":   runModeAttach,
		"starved":  runModeStarved,
		"nonreap":  runModeNonReaping,
		"ignorant": runModeIgnoringChildren,
		"hidden":   runModeHidden,
	}
}

// sign leaves the process id where the test finds it.
func sign() { signFor(os.Getpid()) }

func signFor(pid int) {
	if dir := os.Getenv(pidsEnv); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(pid)), nil, 0o600)
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// deaf ignores what can be ignored, a pipe that nobody reads any more when it gets to print included.
func deaf([]string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	fmt.Println("ready")
	sign() // not before it is deaf: a test that counts the signatures ends the tree then
	time.Sleep(forever)
	return 0
}

// handler exits with a code, some time after the request to end.
func handler(a []string) int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGTERM)
	fmt.Println("ready")
	select {
	case <-c:
	case <-time.After(forever):
	}
	time.Sleep(duration(a[1]))
	fmt.Println("bye")
	return atoi(a[0])
}

// child starts this binary in another mode.
func child(files []*os.File, setsid bool, mode string, args ...string) *os.Process {
	cmd := command(mode, args...)
	if files != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process
}

var inherited = []*os.File{os.Stdin, os.Stdout, os.Stderr}

// tree is a leader with a plain child, a deaf one, and a deaf daemon. The arguments are
// what the leader does then: "deaf", "sleep" or "exit N"; a first "hold" makes the
// daemon keep the streams.
func tree(a []string) int {
	files := []*os.File(nil)
	if a[0] == "hold" {
		files, a = inherited, a[1:]
	}
	child(nil, false, "deaf")
	child(nil, false, "busy")
	daemonize(files)
	fmt.Println("ready")
	if a[0] == "deaf" {
		return deaf(nil)
	}
	sign()
	switch a[0] {
	case "sleep":
		time.Sleep(forever)
	case "exit":
		return atoi(a[1])
	}
	return 0
}

// daemonize starts a deaf daemon: in a session of its own, and without a parent.
func daemonize(files []*os.File) {
	dir := os.Getenv(pidsEnv)
	before := len(signatures(dir))
	p := child(files, true, "fork", "deaf")
	_, _ = p.Wait()
	for len(signatures(dir)) < before+2 {
		time.Sleep(time.Millisecond) // until it has signed
	}
}

// signatures are the processes that have signed.
func signatures(dir string) (pids []int) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		pids = append(pids, atoi(e.Name()))
	}
	return pids
}

// fork starts a process in a mode and exits.
func fork(a []string) int {
	child(inherited, true, a[0], a[1:]...)
	return 0
}

// zombie exits while its child lives on in the group, and holds nothing.
func zombie([]string) int {
	child(nil, false, "deaf")
	return 0
}

// stopped stops itself and its child.
func stopped(a []string) int {
	mode := "busy"
	if a[0] == "deaf" {
		mode = "deaf"
		signal.Ignore(unix.SIGTERM)
	}
	child(nil, false, mode)
	for len(signatures(os.Getenv(pidsEnv))) < 2 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	_ = unix.Kill(0, unix.SIGSTOP)
	time.Sleep(forever)
	return 0
}

// hop is a fork bomb in sessions of its own, that ends after a while all the same. It is of few
// processes, who sign for their children as they start them: else all would start more at the same
// time, and hundreds of them would take the processors from the tests of other packages.
func hop(a []string) int {
	end := time.Now().Add(3 * time.Second)
	if len(a) > 0 {
		n, _ := strconv.ParseInt(a[0], 10, 64)
		end = time.Unix(0, n)
	}
	for time.Now().Before(end) {
		living := 0
		for _, pid := range signatures(os.Getenv(pidsEnv)) {
			if alive(pid) {
				living++
			}
		}
		if living < 12 {
			signFor(child(nil, true, "hop", strconv.FormatInt(end.UnixNano(), 10)).Pid)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0
}

// flood writes bytes, and with a second argument stays after that.
func flood(a []string) int {
	n, block := atoi(a[0]), []byte(strings.Repeat("0123456789abcdef", 16<<10))
	for n > 0 {
		m := min(n, len(block))
		w, err := os.Stdout.Write(block[:m])
		if err != nil {
			return 1
		}
		n -= w
	}
	if len(a) > 1 {
		time.Sleep(forever)
	}
	return 0
}

func singleBytes(a []string) int {
	for range atoi(a[0]) {
		_, _ = os.Stdout.Write([]byte("x"))
	}
	return 0
}

// printText prints a text to a stream, many times at an interval.
func printText(a []string) int {
	w, text := os.Stdout, a[1]
	if a[0] == "stderr" {
		w = os.Stderr
	}
	for range atoi(a[2]) {
		fmt.Fprint(w, text)
		time.Sleep(duration(a[3]))
	}
	return 0
}

// busy works, and says nothing.
func busy([]string) int {
	end := time.Now().Add(forever)
	for time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	return 0
}

// count says for each SIGUSR1 that it has got it, and so does a child in a session of its
// own, under another name.
func count(a []string) int {
	c := make(chan os.Signal, 100)
	signal.Notify(c, unix.SIGUSR1)
	if a[0] == "leader" {
		child(inherited, true, "count", "daemon")
	}
	fmt.Println(a[0], "ready")
	for range c {
		fmt.Println(a[0])
	}
	return 0
}

func echo([]string) int {
	_, _ = io.Copy(os.Stdout, os.Stdin)
	return 0
}
