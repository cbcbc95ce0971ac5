package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const accepted = "PATH is a directory with at least one readable file in it, or left out"

// goSource returns the directory with the source code of the Go installation.
func goSource(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("no PATH given, and the Go installation cannot be asked for its source: go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

// checkTree returns an error if root is not a directory with a readable file.
func checkTree(ctx context.Context, root string) error {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("\"%s\" does not exist; %s", root, accepted)
	case err != nil:
		return fmt.Errorf("\"%s\" cannot be used: %w; %s", root, err, accepted)
	case !info.IsDir():
		return fmt.Errorf("\"%s\" is not a directory; %s", root, accepted)
	}

	found := false
	var unreadable error
	fsys := os.DirFS(root)
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			unreadable = err
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := fsys.Open(path)
		if err != nil {
			unreadable = err
			return nil
		}
		found = true
		return errors.Join(f.Close(), fs.SkipAll)
	})
	switch {
	case found:
		return nil
	case err != nil:
		return err
	case unreadable != nil:
		return fmt.Errorf("\"%s\" has no file that can be read (%w); %s", root, unreadable, accepted)
	}
	return fmt.Errorf("\"%s\" has no files; %s", root, accepted)
}

// stuckFS is a file tree that gets stuck, as on a dead network share: a file that is opened
// after a certain instant never yields a byte.
type stuckFS struct {
	fs.FS
	after time.Time
	stuck fs.File
}

func (s stuckFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || time.Now().Before(s.after) {
		return f, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return f, nil // directories do not change
	}
	return s.stuck, f.Close()
}
