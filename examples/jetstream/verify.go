package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// unfinishedDir is the directory of incomplete files, below the output.
const unfinishedDir = ".unfinished"

// filesBelow returns the slash-separated paths of the regular files of a tree. It returns an error if there are none.
func filesBelow(dir string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no files")
	}
	if err != nil {
		return nil, fmt.Errorf("%q cannot be compressed: %w; want a directory with files in it", dir, err)
	}
	return files, nil
}

// verify compares the compressed files with the originals and prints the result. It returns an error if a file differs,
// is missing, or was completed more than once.
func (d *demo) verify(ctx context.Context) error {
	unfinished, err := os.ReadDir(filepath.Join(d.to, unfinishedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(filepath.Join(d.to, unfinishedDir)); err != nil {
		return err
	}
	var wrong []error
	rounds := 0
	for _, file := range d.files {
		if err := same(filepath.Join(d.from, filepath.FromSlash(file)), filepath.Join(d.to, filepath.FromSlash(file)+".gz")); err != nil {
			wrong = append(wrong, err)
		}
		rounds += d.rounds[file]
		// A file with several executions may have no report, because the killed worker may have completed it.
		if n := d.done[file]; n > 1 || n == 0 && d.rounds[file] == 1 {
			wrong = append(wrong, fmt.Errorf("%s was done %d times", file, n))
		}
		heartbeat.Beat(ctx)
	}
	found, err := filesBelow(d.to)
	if err != nil {
		return err
	}
	if len(found) != len(d.files) {
		wrong = append(wrong, fmt.Errorf("there are %d compressed files, want %d", len(found), len(d.files)))
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	d.printf("%d files, all done, none twice, in %d executions", len(d.files), rounds)
	if len(unfinished) > 0 {
		d.printf("what the killed worker had not finished has been thrown away: %d", len(unfinished))
	}
	if d.killed == 0 || d.stuck == 0 {
		d.printf("there were too few files for each worker to be killed or stuck")
	}
	return nil
}

// same returns an error unless the compressed file has the contents of the original.
func same(original, compressed string) error {
	want, err := sum(os.Open(original))
	if err != nil {
		return err
	}
	f, err := os.Open(compressed)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", compressed, err)
	}
	got, err := sum(io.NopCloser(z), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", compressed, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s differs from %s", compressed, original)
	}
	return nil
}

func sum(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
