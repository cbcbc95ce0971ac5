//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
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

// start starts a command that is looked up as execvp(3) does. os/exec looks it up by other
// rules, and opens /dev/null for a stream that is to be closed.
func start(argv []string, streams []*os.File) (*command, error) {
	process, err := spawnByName(argv, streams)
	if err != nil {
		return nil, err
	}
	c := &command{process: process, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.state, c.err = process.Wait()
	}()
	return c, nil
}

// signal signals the process, if it has not ended.
func (c *command) signal(sig sysSignal) { _ = c.process.Signal(sig) }

// spawnByName tries every directory of PATH. A file that may not be executed is
// remembered as the reason if there is none that may.
func spawnByName(argv []string, streams []*os.File) (*os.Process, error) {
	name := argv[0]
	if name == "" {
		return nil, unix.ENOENT
	}
	if strings.Contains(name, "/") {
		return spawn(name, argv, streams)
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
			if process, err = spawn(file, argv, streams); err == nil {
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
func spawn(file string, argv []string, streams []*os.File) (*os.Process, error) {
	process, err := os.StartProcess(file, argv, &os.ProcAttr{Files: streams})
	if errors.Is(err, unix.ENOEXEC) {
		const shell = "/bin/sh"
		argv = append([]string{shell, file}, argv[1:]...)
		return os.StartProcess(shell, argv, &os.ProcAttr{Files: streams})
	}
	return process, err
}

// reason is the text of a system's error as strerror(3) gives it.
func reason(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	text := err.Error()
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
