package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// What became of a fault that no test noticed.
const (
	survived = "SURVIVED"
	gone     = "GONE" // the line is not there any more
)

var failed = regexp.MustCompile(`(?m)^(?:--- FAIL: (\S+)|panic: test timed out|.*(?:DATA RACE|panic: ).*)`)

// try runs the tests of the packages, one after the other, until one notices the fault, and returns what did.
func (f fault) try(packages []string, limit time.Duration) (string, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.overlay(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return gone, nil
	}
	if err != nil {
		return "", err
	}
	for _, p := range packages {
		// A nested module's tests run in it; the overlay has absolute names.
		cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-timeout", limit.String(), ".")
		cmd.Dir = filepath.FromSlash(p)
		cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		by := "the build or its end"
		if m := failed.FindSubmatch(out); m != nil {
			by = string(bytes.TrimSpace(m[0]))
		}
		return p + ": " + by, nil
	}
	return survived, nil
}
