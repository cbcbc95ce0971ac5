package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// compress writes the contents of src, compressed, to the file unfinished, which no other call may use, and then links
// that file to the name to. If several calls have the same to, one of them creates the link and returns true; the
// others return false and no error. Each block that is read is a heartbeat.
func compress(ctx context.Context, src io.Reader, unfinished, to string) (first bool, err error) {
	for _, name := range []string{unfinished, to} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return false, err
		}
	}
	f, err := os.Create(unfinished)
	if err != nil {
		return false, err
	}
	defer os.Remove(unfinished)
	z := gzip.NewWriter(f)
	_, err = io.Copy(z, heartbeat.Reader(ctx, &untilDone{ctx, src}))
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		return false, err
	}
	err = os.Link(unfinished, to)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// An untilDone is a reader that returns the cause of ctx once ctx has ended.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}
