package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"time"
)

// The results of try for a fault that no test noticed.
const (
	survived = "SURVIVED"
	gone     = "GONE" // the file no longer has the line
)

var failed = regexp.MustCompile(`(?m)^(?:--- FAIL: (\S+)|panic: test timed out|.*(?:DATA RACE|panic: ).*)`)

// try runs the tests of the packages with the fault, one package after the other, until one fails. It returns the
// package and the first failure in its output, or survived or gone.
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
		out, err := command(dir, p, "test", "-overlay", overlay, "-vet=off", "-failfast", "-timeout", limit.String(), ".")
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
