//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// moment is a hook for tests. It is called with "starting" before the command is started, with "started" when the
// command has been started, before its limits begin, and with "sent" after the command has been sent a signal.
var moment = func(what string, command *os.Process) {}

// A command is a process that has been started.
type command struct {
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState // set before ended is closed, unless err is set
	err     error            // the error of the wait for the process
}

// stdStreams returns the standard streams for the command. A stream that was closed when deadline was started is nil.
func stdStreams() []*os.File {
	streams := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for fd := range streams {
		if wasClosed(fd) {
			streams[fd] = nil
		}
	}
	return streams
}

// start starts a command, which it looks up as execvp(3) does. It does not use package os/exec, which has other rules
// for the lookup, and opens /dev/null for a nil stream. If env is nil, the command has the environment of deadline. On
// Linux, the command gets the signal death if deadline is killed. started receives the error of the start, but nothing
// while the file system of the command does not answer.
func start(argv, env []string, streams []*os.File, death syscall.Signal) (c *command, started <-chan error) {
	c = &command{ended: make(chan struct{})}
	errs := make(chan error, 1)
	go func() {
		moment("starting", nil)
		// The kernel sends the signal death when this thread ends, so the thread must live as long as the command. It
		// waits for the command, and ends with the goroutine.
		runtime.LockOSThread()
		process, err := spawnByName(argv, &os.ProcAttr{Env: env, Files: streams, Sys: onDeath(death)})
		c.process = process
		errs <- err
		if err != nil {
			return
		}
		defer close(c.ended)
		c.state, c.err = process.Wait()
	}()
	return c, errs
}

func (c *command) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process. It does nothing if the process has ended.
func (c *command) signal(sig syscall.Signal) { _ = c.process.Signal(sig) }

// spawnByName starts argv[0], which it looks up in PATH unless it contains a slash. If it finds only files that may not
// be executed, it returns the error of such a file, and otherwise ENOENT.
func spawnByName(argv []string, attr *os.ProcAttr) (*os.Process, error) {
	name := argv[0]
	if name == "" {
		return nil, unix.ENOENT
	}
	if strings.Contains(name, "/") {
		return spawn(name, argv, attr)
	}
	path, ok := os.LookupEnv("PATH")
	if !ok {
		path = "/bin:/usr/bin"
	}
	result := error(unix.ENOENT)
	for dir := range strings.SplitSeq(path, ":") {
		file := name // in the working directory
		if dir != "" {
			file = dir + "/" + name
		}
		_, err := os.Stat(file) // cheaper than a failed start
		if err == nil {
			var process *os.Process
			if process, err = spawn(file, argv, attr); err == nil {
				return process, nil
			}
		}
		switch {
		case errors.Is(err, unix.EACCES):
			result = err
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ESTALE),
			errors.Is(err, unix.ENODEV), errors.Is(err, unix.ETIMEDOUT):
		default:
			return nil, err
		}
	}
	return nil, result
}

// spawn starts file. If file is a script without an interpreter line, /bin/sh runs it.
func spawn(file string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	process, err := os.StartProcess(file, argv, attr)
	if errors.Is(err, unix.ENOEXEC) {
		const shell = "/bin/sh"
		argv = append([]string{shell, file}, argv[1:]...)
		return os.StartProcess(shell, argv, attr)
	}
	return process, err
}

// reason returns the text of a system error in the form of strerror(3), which begins with a capital letter.
func reason(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	text := err.Error()
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
