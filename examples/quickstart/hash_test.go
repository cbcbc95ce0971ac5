package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func TestHashTree(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 300_000)
	fsys := fstest.MapFS{
		"a":       {Data: []byte("hello")},
		"dir/big": {Data: big},
		"link":    {Mode: os.ModeSymlink},
	}
	var done tally
	var beats uint64
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		err := hashTree(ctx, fsys, &done)
		beats = heartbeat.FromContext(ctx).Count()
		return err
	}, timeout.Config{})
	want := hashed{files: 2, bytes: int64(len(big)) + 5, last: "dir/big", sum: sha256.Sum256(big)}
	if done.last == "a" { // either worker may be the last
		want.last, want.sum = "a", sha256.Sum256([]byte("hello"))
	}
	if err != nil || done.hashed != want {
		t.Errorf("got %+v, %v\nwant %+v", done.hashed, err, want)
	}
	if beats != 4 {
		t.Errorf("%d heartbeats, want one for each of 2 files and of 2 whole MiB", beats)
	}
}

// Without an enclosing execution the tool is an ordinary function.
func TestHashTreeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var done tally
	err := hashTree(ctx, fstest.MapFS{"a": {}}, &done)
	if !errors.Is(err, context.Canceled) || done.files != 0 {
		t.Errorf("%+v, %v", done.hashed, err)
	}
}

// slowFS takes a while for each file, and counts how many are open at once.
type slowFS struct {
	fs.FS
	takes      time.Duration
	mu         sync.Mutex
	open, most int
}

func (s *slowFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if name == "." || err != nil {
		return f, err
	}
	s.mu.Lock()
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	return f, err
}

// As many files as there are workers are hashed at once, and no more, and every worker beats
// the one execution.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := fstest.MapFS{}
		for i := range 3 * width {
			tree[fmt.Sprint(i)] = &fstest.MapFile{}
		}
		fsys := &slowFS{FS: tree, takes: time.Second}
		var done tally
		start := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			err := hashTree(ctx, fsys, &done)
			if n := heartbeat.FromContext(ctx).Count(); n != 3*width {
				t.Errorf("%d heartbeats, want %d", n, 3*width)
			}
			return err
		}, timeout.Config{Idle: time.Second + 1})
		if err != nil || done.files != 3*width || fsys.most != width || time.Since(start) != 3*time.Second {
			t.Errorf("%v, %d files, %d at once, in %v", err, done.files, fsys.most, time.Since(start))
		}
	})
}

// A read that blocks ends when the context does.
func TestHashForStuck(t *testing.T) {
	r, end, err := osPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	_, err = timeout.Do(t.Context(), func(ctx context.Context) (hashed, error) {
		return hashFor(ctx, stuckFS{FS: os.DirFS("."), stuck: r}, time.Hour)
	}, timeout.Config{Total: 50 * time.Millisecond, Grace: time.Hour})
	var stopped *timeout.Error
	if !errors.As(err, &stopped) || stopped.Abandoned {
		t.Errorf("%v", err)
	}
}
