package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
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
	var done hashed
	var beats uint64
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		err := hashTree(ctx, fsys, &done)
		beats = heartbeat.FromContext(ctx).Count()
		return err
	}, timeout.Config{})
	want := hashed{files: 2, bytes: int64(len(big)) + 5, last: "dir/big", sum: sha256.Sum256(big)}
	if err != nil || done != want {
		t.Errorf("got %+v, %v\nwant %+v", done, err, want)
	}
	if beats != 4 {
		t.Errorf("%d heartbeats, want one for each of 2 files and of 2 whole MiB", beats)
	}
}

// Without an execution around it the tool is an ordinary function.
func TestHashTreeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var done hashed
	err := hashTree(ctx, fstest.MapFS{"a": {}}, &done)
	if !errors.Is(err, context.Canceled) || done.files != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// A read that blocks ends when the context does, and what was done before is kept.
func TestHashForStuck(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fsys := stuckFS{FS: os.DirFS(smallTree(t)), after: time.Now().Add(100 * time.Millisecond), stuck: r}
	done, err := timeout.Do(t.Context(), func(ctx context.Context) (hashed, error) {
		return hashFor(ctx, fsys, generous)
	}, timeout.Config{Total: time.Second, Grace: generous})
	var stopped *timeout.Error
	if !errors.As(err, &stopped) || stopped.Abandoned || done.files == 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestShorten(t *testing.T) {
	const trace = `goroutine 24 [IO wait]:
internal/poll.runtime_pollWait(0x7f, 0x72)
	/go/src/runtime/netpoll.go:351 +0x85
os.(*File).Read(0xc0, {0xc1, 0x8000, 0x8000})
	/go/src/os/file.go:144 +0x4f
io.Copy(...)
	/go/src/io/io.go:388
main.hashFile({0x1, 0x2}, {0x3, 0x4})
	/src/hash.go:67 +0x1a5
main.hashTree.func1(...)
	C:/src/hash.go:37
github.com/tooldeadline/tooldeadline/timeout.(*execution).main(0xc2)
	/src/execution.go:202 +0x5b
created by github.com/tooldeadline/tooldeadline/timeout.(*execution).start in goroutine 1
	/src/execution.go:122 +0x1f

goroutine 25 [select]:
main.other()
	/src/other.go:1 +0x1`
	want := []string{
		"goroutine 24 [IO wait]",
		"os.(*File).Read file.go:144",
		"main.hashFile hash.go:67",
		"main.hashTree.func1 hash.go:37",
	}
	got := shorten([]byte(trace))
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := shorten(nil); len(got) > 0 {
		t.Errorf("from nothing: %q", got)
	}
}
