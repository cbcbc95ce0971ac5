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

// A command is a process that was started.
type command struct {
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState // once ended is closed, unless err is set
	err     error
}

// stdStreams are the standard streams as the command is to have them: nil for one that
// was closed when we were started.
func stdStreams() []*os.File {
	streams := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for fd := range streams {
		if wasClosed(fd) {
			streams[fd] = nil
		}
	}
	return streams
}

// foreground reports whether a terminal is for us to write to: whether its foreground is our
// process group, or the one that we were started in. A shell makes a group of a job, but
// not of a command in a script.
func foreground(terminal *os.File, startedIn int) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() || group == startedIn
}

// start starts a command that is looked up as execvp(3) does. os/exec looks it up by other
// rules, and opens /dev/null for a stream that is to be closed. If we die without a word,
// the command gets the signal death.
func start(argv []string, streams []*os.File, death sysSignal) (*command, error) {
	c := &command{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// For the system it is the thread whose death counts, so this one has to last as
		// long as the command. It waits for it anyway, and ends with the goroutine.
		runtime.LockOSThread()
		process, err := spawnByName(argv, &os.ProcAttr{Files: streams, Sys: onDeath(death)})
		c.process = process
		started <- err
		if err != nil {
			return
		}
		defer close(c.ended)
		c.state, c.err = process.Wait()
	}()
	return c, <-started
}

// signal signals the process, if it has not ended.
func (c *command) signal(sig sysSignal) { _ = c.process.Signal(sig) }

// spawnByName tries every directory of PATH. A file that may not be executed is
// remembered as the reason if there is none that may.
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
		_, err := os.Stat(file) // a look costs less than a process
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

// spawn starts file. A script without an interpreter is the shell's.
func spawn(file string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	process, err := os.StartProcess(file, argv, attr)
	if errors.Is(err, unix.ENOEXEC) {
		const shell = "/bin/sh"
		argv = append([]string{shell, file}, argv[1:]...)
		return os.StartProcess(shell, argv, attr)
	}
	return process, err
}

// reason is the text of a system's error as strerror(3) has it.
func reason(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	text := err.Error()
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
