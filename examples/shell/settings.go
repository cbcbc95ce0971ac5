package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// settings holds the settings of the command line, which a client cannot change.
type settings struct {
	dir        string // in which commands start
	shell      string
	env        []string // of commands
	log        string   // file; empty means stderr
	maxRunning int      // most commands that run at once
	memory     int64    // most bytes of memory of a process; 0 means no limit
	output     int64    // a command that writes more bytes is stopped; 0 means never
	spill      int64    // most bytes of the output of a command that are kept in a file; 0 means no file
	maxTimeout time.Duration
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := new(settings)
	var add names
	f := flag.NewFlagSet("shell", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.dir, "dir", ".", "`DIRECTORY` in which commands start")
	f.StringVar(&s.shell, "shell", "", "`PROGRAM` that runs commands with -c (default bash, or sh if there is none)")
	f.Var(&add, "env", "pass this variable on to commands, too: `NAME`, NAME=VALUE, or a pattern such as 'AWS_*'; may be repeated")
	f.StringVar(&s.log, "log", "", "append the log to this `FILE` instead of writing it to stderr")
	f.IntVar(&s.maxRunning, "jobs", 16, "largest `NUMBER` of commands that run at once")
	f.Int64Var(&s.memory, "memory", 4096, "largest memory of a process, in `MIB`; 0 means no limit")
	f.Int64Var(&s.output, "output", 1024, "stop a command that writes more than so many `MIB`; 0 means never")
	f.Int64Var(&s.spill, "spill", 64, "keep up to so many `MIB` of the output of a command in a file while its job is kept; 0 means no file")
	f.DurationVar(&s.maxTimeout, "max-timeout", 24*time.Hour, "longest `DURATION` that a command may ask for")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errors.New("-h lists the flags")
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("argument %q: want none", f.Arg(0))
	case s.maxRunning < 1 || s.maxRunning > 1000:
		return nil, fmt.Errorf("-jobs %d: want 1 to 1000", s.maxRunning)
	case s.maxTimeout < time.Second:
		return nil, fmt.Errorf("-max-timeout %v: want 1s or more", s.maxTimeout)
	}
	for name, size := range map[string]*int64{"memory": &s.memory, "output": &s.output, "spill": &s.spill} {
		if *size < 0 || *size > 1<<20 {
			return nil, fmt.Errorf("-%s %d: want 0 to %d MiB", name, *size, 1<<20)
		}
		*size <<= 20
	}
	var err error
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	if err := isDir(s.dir); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	if s.shell, err = findShell(s.shell); err != nil {
		return nil, fmt.Errorf("-shell: %w", err)
	}
	if s.env, err = environment(os.Environ(), add); err != nil {
		return nil, fmt.Errorf("-env: %w", err)
	}
	return s, nil
}

func isDir(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}

func findShell(name string) (path string, err error) {
	if name == "" {
		if path, err = exec.LookPath("bash"); err == nil {
			return path, nil
		}
		name = "sh"
	}
	if path, err = exec.LookPath(name); err == nil {
		path, err = filepath.Abs(path)
	}
	return path, err
}

// names holds the values of a flag that may be repeated.
type names []string

func (n *names) String() string     { return strings.Join(*n, " ") }
func (n *names) Set(s string) error { *n = append(*n, s); return nil }
