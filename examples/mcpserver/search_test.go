package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
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
	dir := write(t, map[string]string{"a.go": "package a\r\nfunc main() {}\r\n", "b/c.go": "func mainly()\nfunc main()"})
	eachProtocol(t, options{}, nil, func(t *testing.T, c *client, _ string) {
		for _, tc := range []struct {
			root, pattern, want string
			failed              bool
		}{
			{dir, `func main\(.*\)$`, "b/c.go:2: func main()\n1 matching lines; searched 2 of 2 files", false},
			{dir, "(", "pattern: error parsing regexp: missing closing ): `(` (the syntax", true},
			{dir + "/none", "x", "root: ", true},
		} {
			if res, got := c.must(t, "search", map[string]any{"root": tc.root, "pattern": tc.pattern}); res.IsError != tc.failed || !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("isError %v: %q", res.IsError, got)
			}
		}
	})
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
	// On a busy machine the time may be over before the file is opened.
	if got := searchHere(t, ctx, dir, strings.Repeat("(?:x{0,30}){33}", 13)+"y"); !strings.HasPrefix(got, "0 matching lines; searched ") {
		t.Errorf("%q", got)
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

// SPEC 7.3: files done of total, and the current one, of which the last is sent in any case.
func TestSearchProgress(t *testing.T) {
	var last progress.Notification
	_, err := toolcall.Do(t.Context(), nil, toolcall.Call{Token: "t", Send: func(_ context.Context, n progress.Notification) error {
		last = n
		return nil
	}}, func(ctx context.Context) (any, error) {
		return searchHere(t, ctx, write(t, map[string]string{"a": "x", "b": "x", "c": "x"}), "x"), nil
	})
	if want := (progress.Notification{ProgressToken: "t", Progress: 2, Total: 3, Message: "c"}); err != nil || last != want {
		t.Errorf("%+v, %v, want %+v", last, err, want)
	}
}
