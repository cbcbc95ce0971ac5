package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The program takes about 6 s. This is for a very busy machine.
const generous = 2 * time.Minute

// program is the built quickstart.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "quickstart")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "quickstart.exe")
		if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", program, ".").CombinedOutput(); err != nil {
			panic("go build: " + string(out))
		}
		return m.Run()
	}())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, program, args...)
}

// exitCode returns the code of a command that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func smallTree(t *testing.T) string {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.txt":         "a",
		"empty":         "",
		"sub/b.txt":     strings.Repeat("b", 10_000),
		"sub/sub/c.txt": strings.Repeat("c", 3<<20+1),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// All four runs, off a terminal.
func TestFourRuns(t *testing.T) {
	t.Parallel()
	root := smallTree(t)
	var stdout, stderr bytes.Buffer
	// With an idle limit of 1 s it may see a busy machine stand still for that long, and says so.
	const tries = 3
	for unexpected, try := true, 1; unexpected && try <= tries; try++ {
		stdout.Reset()
		stderr.Reset()
		cmd := command(t, root)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		code := exitCode(t, cmd.Run())
		unexpected = strings.Contains(stdout.String(), "as expected      NO")
		if (code != 0) != unexpected || stderr.Len() > 0 {
			t.Errorf("exit code %d, stderr %q", code, &stderr)
		}
	}
	defer func() {
		if t.Failed() {
			t.Logf("stdout:\n%s", &stdout)
		}
	}()

	runs := regexp.MustCompile(`(?m)^\d\. `).Split(stdout.String(), -1)
	if len(runs) != 5 {
		t.Fatalf("%d runs", len(runs)-1)
	}
	if !strings.Contains(runs[0], root) {
		t.Errorf("the introduction does not name %s", root)
	}
	if !strings.Contains(runs[4], "All four runs ended as they should") {
		t.Error("the last line is missing")
	}
	for i, lines := range [][]string{
		{`error +none`, `exit code +0`, `result +[1-9]\d* files`, `heartbeats +[1-9]`},
		{
			`error +No progress for 1s \(idle timeout\)\. Tool should call heartbeat\(\) during long work\.`,
			`exit code +124`, `longest silence +\d+\.\d+ s of 1 s .*that stopped it`, `partial result +[1-9]\d* files`,
			`it hung in +goroutine \d+ \[.*\]`, ` +os\.\(\*File\)\.[rR]ead +file\S*\.go:\d+`, ` +main\.hashFile +hash\.go:\d+`,
		},
		{
			`error +Tool exceeded wall-clock limit of 1\.5s\.`,
			`exit code +124`, `elapsed +\d+\.\d+ s of 1\.5 s .*that stopped it`, `partial result +[1-9]\d* files`,
		},
		{`error +Tool was aborted: .*`, `exit code +130`, `partial result +[1-9]\d* files`},
	} {
		for _, line := range append(lines, `last file +[0-9a-f]{8}\.\.\. +\S`, `as expected +yes`) {
			if !regexp.MustCompile(`(?m)^   ` + line).MatchString(runs[i+1]) {
				t.Errorf("run %d has no line %q", i+1, line)
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.MkdirAll(filepath.Join(empty, "empty too"), 0o755); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	const accepted = "PATH is a directory with at least one readable file"
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"not found":       {[]string{missing}, 2, []string{`"` + missing + `" does not exist`, accepted}},
		"not a directory": {[]string{file}, 2, []string{`"` + file + `" is not a directory`, accepted}},
		"empty tree":      {[]string{empty}, 2, []string{`"` + empty + `" has no files`, accepted}},
		"empty argument":  {[]string{""}, 2, []string{`"" does not exist`, accepted}},
		"two arguments":   {[]string{dir, dir}, 2, []string{"2 arguments", "usage: quickstart [PATH]"}},
		"unknown flag":    {[]string{"-x"}, 2, []string{"-x", "usage: quickstart [PATH]"}},
		"help":            {[]string{"-h"}, 0, []string{"usage: quickstart [PATH]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := command(t, tc.args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd.Run()); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr is %q, want %q in it", &stderr, want)
				}
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout: %s", &stdout)
			}
		})
	}
}

// Ctrl-C ends the program, except in the fourth run, which it is meant for.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a test cannot send Ctrl-C to one process there")
	}
	t.Parallel()
	root := smallTree(t)
	for after, want := range map[string]struct {
		code int
		line string
	}{
		"1. Long":    {130, "Interrupted in run 1; "},
		"4. Aborted": {0, "All four runs ended as they should"},
	} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, root)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var seen strings.Builder
			lines := bufio.NewScanner(io.TeeReader(stdout, &seen))
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), after) {
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				}
			}
			code := exitCode(t, cmd.Wait())
			if code != want.code || !strings.Contains(seen.String(), want.line) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, want.code, want.line, &seen)
			}
		})
	}
}
