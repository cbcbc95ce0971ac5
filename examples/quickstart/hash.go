package main

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// width is the number of files that are hashed at once.
const width = 4

// hashed is the work that the tool has done so far.
type hashed struct {
	files int
	bytes int64
	last  string            // the newest file,
	sum   [sha256.Size]byte // and its hash
}

// A tally is the work that several workers have done together.
type tally struct {
	mu sync.Mutex
	hashed
}

// add changes the tally with change, under its lock.
func (t *tally) add(change func(*hashed)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.hashed)
}

// hashTree is the tool. It hashes every regular file of fsys, several at once, and adds each file to done, which has
// the partial result if ctx is cancelled.
//
// The context of the group is derived from ctx, the context of the execution. So the beats of all workers renew one
// idle limit, and when a limit fires, all workers are cancelled.
func hashTree(ctx context.Context, fsys fs.FS, done *tally) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	walked := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && d.Type().IsRegular() { // what cannot be read is left out
			group.Go(func() error { return hashOne(ctx, fsys, path, done) }) // waits for a free worker
		}
		return nil
	})
	if err := group.Wait(); err != nil { // waits even if the walk has failed, so that no worker is left
		return err
	}
	return walked
}

// hashOne hashes one file, for one worker. It returns an error only if ctx has ended.
func hashOne(ctx context.Context, fsys fs.FS, path string, done *tally) error {
	sum, err := hashFile(ctx, fsys, path, done)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return nil // what cannot be read is left out
	}
	done.add(func(h *hashed) {
		h.files++
		h.last, h.sum = path, sum
	})
	heartbeat.Beat(ctx) // another file is done: that is progress
	return nil
}

// hashFile returns the SHA-256 hash of a file, and adds to done the bytes that it has read.
func hashFile(ctx context.Context, fsys fs.FS, path string, done *tally) (sum [sha256.Size]byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	// A blocked Read does not return when ctx ends, but it returns when the file is closed.
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer stop()

	h := sha256.New()
	for {
		n, err := io.CopyN(h, f, 1<<20)
		done.add(func(h *hashed) { h.bytes += n })
		if err == io.EOF {
			h.Sum(sum[:0])
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		heartbeat.Beat(ctx) // another MiB of a big file is progress too
	}
}

// hashFor hashes the tree again and again for d, so that the length of a run depends neither
// on the size of the tree nor on the speed of the machine.
func hashFor(ctx context.Context, fsys fs.FS, d time.Duration) (hashed, error) {
	var done tally
	work, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := hashTree(work, fsys, &done)
		switch {
		case ctx.Err() != nil:
			return done.hashed, ctx.Err() // stopped: the work so far is the partial result
		case work.Err() != nil:
			return done.hashed, nil // d is over
		case err != nil:
			return done.hashed, err
		}
	}
}
