package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// write makes a tree of files.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSearch(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		dir := write(t, map[string]string{"a.go": "package a\r\nfunc main() {}\r\n", "b/c.go": "func mainly()\nfunc main()"})
		c := w.connect(t, nil, nil)
		res, got := c.must(t, "search", map[string]any{"root": dir, "pattern": `func main\(.*\)$`})
		want := "b/c.go:2: func main()\n1 matching lines; searched 2 of 2 files"
		if res.IsError || got[0] != want {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
		res, got = c.must(t, "search", map[string]any{"pattern": "("})
		if !res.IsError || !strings.HasPrefix(got[0], "pattern: error parsing regexp: missing closing ): `(` (the syntax") {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
		res, got = c.must(t, "search", map[string]any{"root": dir + "/none", "pattern": "x"})
		if !res.IsError || !strings.HasPrefix(got[0], "root: ") {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
	})
}

// SPEC 3.2, 7.7: how far it came by the limit.
func TestSearchLimit(t *testing.T) {
	t.Parallel()
	c := ways[0].connect(t, nil, nil)
	res, got := c.must(t, "search", map[string]any{"root": manyFiles(t), "pattern": "y", "timeoutMs": 1})
	if !res.IsError || len(got) != 2 || !strings.HasPrefix(got[0], "Tool exceeded wall-clock limit of 0.001s.") || !strings.HasPrefix(got[1], "0 matching lines; searched ") {
		t.Errorf("isError %v: %q", res.IsError, got)
	}
	if d := cmp.Diff([]any{"total", 124.0, 1.0, 1.0}, outcome(t, res)); d != "" {
		t.Error(d)
	}
}

// manyFiles takes longer than a millisecond to search. The names are numbers.
func manyFiles(t *testing.T) (dir string) {
	t.Helper()
	files := make(map[string]string)
	for i := range 2000 {
		files[fmt.Sprintf("%04d", i)] = "x"
	}
	return write(t, files)
}

// searchHere searches without a server.
func searchHere(t *testing.T, ctx context.Context, dir, pattern string) string {
	t.Helper()
	res, _, err := search(ctx, nil, searchInput{Root: dir, Pattern: pattern})
	if err != nil {
		t.Fatal(err)
	}
	return texts(res)[0]
}

func TestSearchBounds(t *testing.T) {
	for _, tc := range []struct {
		name, file, pattern, want string
	}{
		{"many matches", strings.Repeat("m\n", maxMatches+1), "m", fmt.Sprintf("%d matching lines; searched 1 of 1 files; stopped at %[1]d lines", maxMatches)},
		{"a long line", strings.Repeat("é", 150) + "\n", "é", "f:1: " + strings.Repeat("é", 100) + "...\n1 matching lines; searched 1 of 1 files"},
		{"longer than is looked at", strings.Repeat("m", 3*maxScanned) + "x\nm\n", "^m+x?$", "f:2: m\n2 matching lines; searched 1 of 1 files"},
		{"not text", "m\x00m", "m", "0 matching lines; searched 1 of 1 files"},
		{"no newline at the end", "a\nm", "^m$", "f:2: m\n1 matching lines; searched 1 of 1 files"},
		{"empty", "", "", "0 matching lines; searched 1 of 1 files"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := searchHere(t, t.Context(), write(t, map[string]string{"f": tc.file}), tc.pattern)
			if !strings.HasSuffix(got, tc.want) || len(got) > maxMatches*(maxLine+20) {
				t.Errorf("%q", got)
			}
		})
	}
}

// SPEC 3.24: a pattern that takes minutes for one line is given up with the call, and a long one refused at once.
func TestSearchEndsWithinALine(t *testing.T) {
	dir := write(t, map[string]string{"f": strings.Repeat("x", maxScanned-1) + "\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	got := searchHere(t, ctx, dir, strings.Repeat("(?:x{0,30}){33}", 13)+"y")
	if want := "0 matching lines; searched 1 of 1 files"; got != want || time.Since(begun) > time.Minute {
		t.Errorf("%q after %v", got, time.Since(begun))
	}
	_, _, err := search(t.Context(), nil, searchInput{Root: dir, Pattern: strings.Repeat("x", maxPattern+1)})
	if want := "pattern: want at most 200 bytes, got 201"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Files outside of the root stay unread, and so do directories such as .git.
func TestSearchStaysInside(t *testing.T) {
	outside := write(t, map[string]string{"secret": "match\n"})
	dir := write(t, map[string]string{"in": "match\n", ".git/x": "match\n", "d/.hidden": "match\n"})
	for link, target := range map[string]string{
		"file": filepath.Join(outside, "secret"), "dir": outside, "up": "../" + filepath.Base(outside) + "/secret", "loop": ".",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	want := "d/.hidden:1: match\nin:1: match\n2 matching lines; searched 2 of 2 files"
	if got := searchHere(t, t.Context(), dir, "match"); got != want {
		t.Errorf("%q", got)
	}
}

// SPEC 7.3: files done of total, and the current one.
func TestSearchProgress(t *testing.T) {
	dir := manyFiles(t)
	counted := 0
	for try := 0; try < 10 && counted < 3; try++ { // on a busy machine one may be over before there is an update
		var got []progress.Notification
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			stop := progress.Start(ctx, "t", time.Microsecond, func(_ context.Context, n progress.Notification) error {
				got = append(got, n)
				return nil
			})
			defer stop()
			searchHere(t, ctx, dir, "x+y")
			return nil
		}, timeout.FastTools())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range got {
			if n.Total == 0 && n.Message == "listing ." {
				continue
			}
			counted++
			if n.Total != 2000 || fmt.Sprintf("%04d", int(n.Progress)) != n.Message {
				t.Errorf("%+v", n)
			}
		}
	}
	if counted < 3 {
		t.Errorf("%d updates", counted)
	}
}

// SPEC 7.7: the result of a search that is stopped has the matches so far.
func TestSearchStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if got := searchHere(t, ctx, write(t, map[string]string{"a": "m"}), "m"); got != "0 matching lines; searched 0 of 0 files" {
		t.Errorf("%q", got)
	}
}
