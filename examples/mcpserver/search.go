package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
)

const (
	maxPattern = 200     // bytes of a pattern
	maxMatches = 200     // lines in a result
	maxLine    = 200     // bytes of a line in a result
	maxScanned = 1 << 20 // bytes of a line that are searched
)

type searchInput struct {
	Root      string `json:"root,omitempty" jsonschema:"the directory to search, by default that of the server"`
	Pattern   string `json:"pattern" jsonschema:"a regular expression in RE2 syntax, matched against each line"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"stop after this many milliseconds, up to ten minutes"`
}

// search finds the lines that match in the regular files below a directory. It does not follow symbolic
// links, and skips directories whose name begins with a dot. It reports each file as progress. When it
// is stopped, it returns the lines found so far.
func search(ctx context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, any, error) {
	if len(in.Pattern) > maxPattern {
		return nil, nil, fmt.Errorf("pattern: want at most %d bytes, got %d", maxPattern, len(in.Pattern))
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, nil, fmt.Errorf("pattern: %w (the syntax is that of RE2: https://github.com/google/re2/wiki/Syntax)", err)
	}
	if in.Root == "" {
		in.Root = "."
	}
	// Even if the tree changes meanwhile, nothing outside it can be opened.
	root, err := os.OpenRoot(in.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("root: %w", err)
	}
	defer root.Close()

	s := &searcher{root: root, pattern: pattern, lines: bufio.NewReaderSize(nil, maxScanned)}
	files, err := s.list(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("root: %w", err)
	}
	for i, file := range files {
		if ctx.Err() != nil || s.full() {
			break
		}
		progress.Report(ctx, progress.Update{Progress: float64(i), Total: float64(len(files)), Message: file})
		if err := s.file(ctx, file); err != nil {
			s.unreadable++
		}
		s.searched++
	}
	return text(s.report(len(files))), nil, nil
}

type searcher struct {
	root    *os.Root
	pattern *regexp.Regexp
	lines   *bufio.Reader

	matches              []string
	searched, unreadable int
}

func (s *searcher) full() bool { return len(s.matches) == maxMatches }

// list returns the files to search, or those found when ctx ended. It skips what it cannot read, except
// the root itself.
func (s *searcher) list(ctx context.Context) (files []string, _ error) {
	err := fs.WalkDir(s.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil && path == ".":
			return err
		case err != nil:
			s.unreadable++
			return nil
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			progress.Report(ctx, progress.Update{Message: "listing " + path})
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// file searches one file, unless it is not text.
func (s *searcher) file(ctx context.Context, path string) error {
	f, err := s.root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := s.lines
	r.Reset(heartbeat.Reader(ctx, f))
	if head, _ := r.Peek(8000); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	for n := 1; ctx.Err() == nil && !s.full(); n++ {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && s.match(ctx, bytes.TrimRight(line, "\r\n")) {
			s.matches = append(s.matches, fmt.Sprintf("%s:%d: %s", path, n, cut(string(bytes.TrimRight(line, "\r\n")), maxLine)))
		}
		for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
			_, err = r.ReadSlice('\n') // the rest of a line that is too long
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// match reports whether a line matches. A pattern such as (x{0,30}){33} takes seconds for a long line, so ctx ends
// the match between two characters.
func (s *searcher) match(ctx context.Context, line []byte) bool {
	r := untilDone{ctx, bytes.NewReader(line)}
	return s.pattern.MatchReader(r) && ctx.Err() == nil
}

// untilDone is a reader that is at its end when ctx has ended.
type untilDone struct {
	ctx  context.Context
	line *bytes.Reader
}

func (r untilDone) ReadRune() (rune, int, error) {
	if r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.line.ReadRune()
}

func (s *searcher) report(files int) string {
	var b strings.Builder
	for _, m := range s.matches {
		b.WriteString(m)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d matching lines; searched %d of %d files", len(s.matches), s.searched, files)
	if s.full() {
		fmt.Fprintf(&b, "; stopped at %d lines", maxMatches)
	}
	if s.unreadable > 0 {
		fmt.Fprintf(&b, "; %d could not be read", s.unreadable)
	}
	return b.String()
}
