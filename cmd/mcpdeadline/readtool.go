package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// readTool is the name of the tool that reads results which were cut.
const readTool = "read_result"

// Bounds of a search.
const (
	maxPattern   = 200      // bytes
	maxProgram   = 1000     // instructions of the compiled pattern
	maxMatched   = 64 << 10 // bytes of a line that are matched at once
	windowsShare = 1 << 10  // bytes that two such pieces of a line share
	maxExcerpt   = 400      // characters of a line that are shown
	searchLimit  = 10 * time.Second
)

// readTool returns the name of the tool that reads results, and what begins each id. If the server has a tool
// of that name, the name has the suffix that it has in hosts which do not prefix names.
func (s *session) readTool() (name, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner = ownerOf(s.server)
	if s.host.plain || s.theirs[readTool] {
		return readTool + "_" + owner + "_" + s.mark, owner
	}
	return readTool, owner
}

// readDefinition returns the tool as tools/list has it.
func readDefinition(name string) map[string]any {
	text := func(what string) map[string]any { return map[string]any{"type": "string", "description": what} }
	number := func(what string) map[string]any {
		return map[string]any{"type": "integer", "minimum": 0, "description": what}
	}
	return map[string]any{
		"name": name,
		"description": `Reads a result of which something was left out: the text from a character on, or the lines that match a ` +
			`pattern. The last line of such a result has the id.`,
		"inputSchema": map[string]any{
			"type": "object",
			"properties": map[string]any{
				"id":     text("The id from the last line of the result."),
				"offset": number("The character to begin with; 0 is the first."),
				"limit":  number("How many characters to return at most."),
				"grep":   text("A regular expression (RE2 syntax): return the lines that match it, each with its offset."),
			},
			"required": []string{"id"},
		},
		"annotations": map[string]bool{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
	}
}

// reads answers a call of the tool that reads results. It reports false if the request is no such call.
func (s *session) reads(ctx context.Context, m *message) bool {
	if s.maxResult.most == 0 || m.Method != "tools/call" {
		return false
	}
	params := m.read()
	if name, _ := s.readTool(); params.Name != name {
		return false
	}
	s.answerHere(ctx, m, func(ctx context.Context) (map[string]any, error) {
		text, err := s.read(ctx, params.Arguments)
		if context.Cause(ctx) == errHostCancelled {
			return nil, errHostCancelled
		}
		fields := map[string]any{}
		if err != nil {
			text = err.Error()
			fields["isError"] = true
		}
		fields["content"] = []any{map[string]string{"type": "text", "text": text}}
		if params.Meta.Version >= "2026-07-28" {
			fields["resultType"] = "complete"
		}
		return fields, nil
	})
	return true
}

// A reading is what a call of the tool asks for.
type reading struct {
	ID            *string `json:"id"`
	Offset, Limit *float64
	Grep          *string
}

// read returns what a call of the tool asks for, within the bound.
func (s *session) read(ctx context.Context, arguments json.RawMessage) (string, error) {
	var r reading
	if len(arguments) > 0 {
		if err := adapter.Unmarshal(arguments, &r); err != nil {
			return "", fmt.Errorf(`arguments: %w; want {"id": text, "offset": number, "limit": number, "grep": text}`, err)
		}
	}
	if r.ID == nil {
		return "", errors.New(`"id" is missing: it is in the last line of the result`)
	}
	_, owner := s.readTool()
	if of, _, signed := strings.Cut(*r.ID, "."); signed && of != owner {
		return "", fmt.Errorf("the result with the id %q is one of the server %s: call that server's tool", shortText(*r.ID), shortText(of))
	}
	text, found := s.kept.get(s, *r.ID)
	if !found {
		return "", fmt.Errorf("no result with the id %q: results are kept until the session ends, and up to %s, the oldest going first; call the tool again that gave it",
			shortText(*r.ID), inKB(s.kept.most))
	}
	whole := utf8.RuneCountInString(text)
	offset, limit := 0, whole
	for _, n := range []struct {
		key   string
		given *float64
		to    *int
		most  int
	}{{"offset", r.Offset, &offset, whole}, {"limit", r.Limit, &limit, math.MaxInt32}} {
		if n.given == nil {
			continue
		}
		if v := *n.given; v != math.Trunc(v) || v < 0 || n.key == "offset" && v > float64(n.most) {
			return "", fmt.Errorf("%s=%s: want a whole number from 0 to %d", n.key, strconv.FormatFloat(v, 'f', -1, 64), n.most)
		}
		*n.to = int(min(*n.given, float64(n.most)))
	}
	begin := byteOf(text, offset)
	if r.Grep != nil {
		return s.search(ctx, *r.ID, *r.Grep, text[begin:], offset, limit)
	}
	tool, _ := s.readTool()
	last := func(to int) string {
		if to == whole {
			return fmt.Sprintf("[Characters %d to %d of %d, the end.]", offset, to, whole)
		}
		return fmt.Sprintf(`[Characters %d to %d of %d. Call %s with {"id":"%s","offset":%d} to read on.]`, offset, to, whole, tool, *r.ID, to)
	}
	rest := text[begin:]
	n := s.maxResult.first(rest, s.maxResult.most-s.maxResult.of(last(max(whole-1, 0)))-10)
	if asked := byteOf(rest, limit); asked <= n {
		n = asked
	} else if n < len(rest) {
		n = atLineEnd(rest, n)
	}
	shown := rest[:n]
	return ended(shown) + last(offset+utf8.RuneCountInString(shown)), nil
}

// ended returns a text with a newline at its end, unless it is empty.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// byteOf returns where the character n of a text begins, or the length of a shorter text.
func byteOf(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// shortText returns a text, cut to a length that suits a message.
func shortText(text string) string { return shorten(text, 60) }

func shorten(text string, most int) string {
	if n := byteOf(text, most); n < len(text) {
		return text[:n] + "..."
	}
	return text
}

// compile compiles a pattern that can be searched for in a bounded time.
func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("grep: want a pattern of at most %d bytes, got %d", maxPattern, len(pattern))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("grep=%q: want a regular expression in RE2 syntax: %w", pattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("grep=%q: want a simpler pattern; its repetitions are too many", pattern)
	}
	return regexp.Compile(pattern)
}

// search returns the lines of text that match a pattern, each with its offset. text begins at the character
// offset of the result.
func (s *session) search(ctx context.Context, id, pattern, text string, offset, limit int) (string, error) {
	re, err := compile(pattern)
	if err != nil {
		return "", err
	}
	tool, _ := s.readTool()
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(pattern)
	next := func(said string, at int) string {
		return fmt.Sprintf(`[%s Call %s with {"id":"%s","grep":%s,"offset":%d} to search on.]`, said, tool, id, strings.TrimSpace(quoted.String()), at)
	}
	const more, late = "More lines match.", "The search takes long."
	room := min(s.maxResult.most-s.maxResult.of(next(late, math.MaxInt32))-10, limit)
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	var out strings.Builder
	found, at := 0, offset // the character at which the line begins
	for len(text) > 0 {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		where, matched := match(ctx, re, line)
		if ctx.Err() != nil {
			if at == offset && found == 0 && len(line) > maxMatched {
				return "", errors.New("the search takes too long; want a simpler pattern")
			}
			return out.String() + next(late, at), nil
		}
		if matched {
			shown := fmt.Sprintf("%d: %s\n", at+utf8.RuneCountInString(line[:where]), shorten(line[where:], maxExcerpt))
			size := s.maxResult.of(shown)
			if size > room {
				if found > 0 {
					return out.String() + next(more, at), nil
				}
				shown = shown[:s.maxResult.first(shown, room-2)] + "\n"
			}
			room -= size
			out.WriteString(shown)
			found++
		}
		at += utf8.RuneCountInString(line) + 1
	}
	return out.String() + fmt.Sprintf("[%d lines match.]", found), nil
}

// match reports whether a line matches, and from where it is shown: its beginning, or, if it is long, a
// little before the match. A long line is matched in pieces.
func match(ctx context.Context, re *regexp.Regexp, line string) (where int, matched bool) {
	for begin := 0; ; {
		end := min(begin+maxMatched, len(line))
		for end < len(line) && !utf8.RuneStart(line[end]) {
			end--
		}
		if at := re.FindStringIndex(line[begin:end]); at != nil {
			if where = begin + at[0]; where <= maxExcerpt/2 {
				return 0, true
			}
			for where -= min(where, maxExcerpt/4); !utf8.RuneStart(line[where]); {
				where--
			}
			return where, true
		}
		if end == len(line) || ctx.Err() != nil {
			return 0, false
		}
		for begin = end - windowsShare; !utf8.RuneStart(line[begin]); {
			begin--
		}
	}
}
