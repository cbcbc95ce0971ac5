package main

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// hashed is what the tool has done so far.
type hashed struct {
	files   int
	bytes   int64
	rounds  int               // how often the whole tree was gone through
	skipped int               // files and directories that could not be read
	last    string            // the newest file,
	sum     [sha256.Size]byte // and its hash
}

// hashTree is the tool. It hashes every regular file of fsys and adds it to done, which
// holds what there is also when ctx is cancelled.
func hashTree(ctx context.Context, fsys fs.FS, done *hashed) error {
	return fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			done.skipped++
			return nil // WalkDir goes on with what comes after
		}
		if !d.Type().IsRegular() {
			return nil
		}
		sum, err := hashFile(ctx, fsys, path, &done.bytes)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			done.skipped++
			return nil
		}
		done.files++
		done.last, done.sum = path, sum

		heartbeat.Beat(ctx) // one file more: that is progress
		return nil
	})
}

// hashFile gives the SHA-256 hash of a file, and adds to size what it has read.
func hashFile(ctx context.Context, fsys fs.FS, path string, size *int64) (sum [sha256.Size]byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	// A blocked Read does not look at ctx. Closing the file makes it return.
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer stop()

	h := sha256.New()
	for {
		n, err := io.CopyN(h, f, 1<<20)
		*size += n
		if err == io.EOF {
			h.Sum(sum[:0])
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		heartbeat.Beat(ctx) // one MiB more of a big file is progress too
	}
}

// hashFor hashes the tree again and again for d. It is what makes a run last, whatever
// the size of the tree and the speed of the machine.
func hashFor(ctx context.Context, fsys fs.FS, d time.Duration) (hashed, error) {
	var done hashed
	work, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := hashTree(work, fsys, &done)
		switch {
		case ctx.Err() != nil:
			return done, ctx.Err() // stopped: what is done so far is the partial result
		case work.Err() != nil:
			return done, nil // d is over
		case err != nil:
			return done, err
		}
		done.rounds++
	}
}
