package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A bound is the size of a result from which on it is cut: how much of it the model sees, as JSON encodes
// it. The zero bound is none.
type bound struct {
	most  int
	bytes bool // otherwise characters: Unicode code points
}

const (
	leastBound    = 1000
	acceptedBound = `a number of characters such as 40000, or of bytes such as 9KB, and at least 1000; or 0 for none`
	// shortError is the size below which no error is cut.
	shortError = 10_000
	// betweenTexts is what JSON needs from one text to the next.
	betweenTexts = len(`"},{"type":"text","text":"`)
	// gap stands for what is left out.
	gap = "[...]\n"
)

// parseBound reads N, Nchars or NKB. A KB is 1000 bytes.
func parseBound(key, value string) (b bound, _ error) {
	digits, unit := strings.TrimSpace(value), 1
	if rest, found := strings.CutSuffix(digits, "KB"); found {
		digits, unit, b.bytes = rest, 1000, true
	} else {
		digits = strings.TrimSuffix(digits, "chars")
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
	if b.most = int(n) * unit; err != nil || n > math.MaxInt32/uint64(unit) || n != 0 && b.most < leastBound {
		return bound{}, &settingError{key, fmt.Sprintf("%q", value), acceptedBound}
	}
	return b, nil
}

// size returns how much of the bound a character takes, as JSON encodes it.
func (b bound) size(r rune, width int) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ':
		return 6
	case b.bytes:
		return width
	}
	return 1
}

// of returns how much of the bound a text takes.
func (b bound) of(text string) (n int) {
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		n += b.size(r, width)
		i += width
	}
	return n
}

// first returns the length of the longest beginning of text that takes no more than room, whole characters.
func (b bound) first(text string, room int) (i int) {
	for i < len(text) {
		r, width := utf8.DecodeRuneInString(text[i:])
		if room -= b.size(r, width); room < 0 {
			break
		}
		i += width
	}
	return i
}

// last returns where the longest end of text begins that takes no more than room.
func (b bound) last(text string, room int) int {
	i := len(text)
	for i > 0 {
		r, width := utf8.DecodeLastRuneInString(text[:i])
		if room -= b.size(r, width); room < 0 {
			break
		}
		i -= width
	}
	return i
}

// atLineEnd returns the last end of a line in text[:i], or i if more than half would go.
func atLineEnd(text string, i int) int {
	if end := strings.LastIndexByte(text[:i], '\n') + 1; end > i/2 {
		return end
	}
	return i
}

// atLineStart returns the first start of a line in text[i:], or i if more than half would go.
func atLineStart(text string, i int) int {
	if i == 0 || text[i-1] == '\n' {
		return i
	}
	if end := strings.IndexByte(text[i:], '\n') + 1; end > 0 && end < (len(text)-i)/2 {
		return i + end
	}
	return i
}

// cut returns the head and the tail of a text, and a last line that says how to read the rest. It takes no
// more than the bound.
func (b bound) cut(text, tool, id string) string {
	line := func(left, whole, offset int) string {
		return fmt.Sprintf(`[%s of %s left out. Call %s with {"id":"%s","offset":%d}; {"id":"%s","grep":"PATTERN"} searches it.]`,
			inKB(left), inKB(whole), tool, id, offset, id)
	}
	room := b.most - b.of(line(len(text), len(text), len(text))) - b.of(gap) - 10 // two newlines, and a longer unit
	head := atLineEnd(text, b.first(text, room*6/10))
	tail := max(atLineStart(text, b.last(text, room*4/10)), head)
	var out strings.Builder
	out.WriteString(text[:head])
	if head > 0 && text[head-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(gap)
	out.WriteString(text[tail:])
	if !strings.HasSuffix(text[tail:], "\n") {
		out.WriteByte('\n')
	}
	out.WriteString(line(tail-head, len(text), utf8.RuneCountInString(text[:head])))
	return out.String()
}

func inKB(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	case n < 10_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// A content is an item of a result, as far as its text is concerned.
type content struct {
	Type     string
	Text     string
	Resource struct {
		URI  string
		Text string
	}
}

// text returns what a model reads of an item, and whether that is all that there is.
func (c *content) text() (string, bool) {
	switch {
	case c.Type == "text":
		return c.Text, true
	case c.Type == "resource" && c.Resource.Text != "":
		return c.Resource.URI + "\n" + c.Resource.Text, true
	}
	return "", false
}

// bounded returns the result of a tool call within the bound of -max-result. If it is larger, its texts are
// replaced with one that has their beginning and end, its structured content is dropped, and the whole is
// kept for the tool that reads it. Images, links and the like stay.
func (s *session) bounded(result json.RawMessage) (_ json.RawMessage, cut bool) {
	b := s.maxResult
	if b.most == 0 || len(result) <= b.most {
		return result, false
	}
	s.kept.cutting.Lock() // a large result is copied several times
	defer s.kept.cutting.Unlock()
	fields := make(map[string]json.RawMessage)
	var items []json.RawMessage
	if adapter.Unmarshal(result, &fields) != nil || fields["content"] != nil && adapter.Unmarshal(fields["content"], &items) != nil {
		return result, false
	}
	var texts []string
	var others []json.RawMessage
	size, chars := 0, 0
	for _, item := range items {
		var c content
		if adapter.Unmarshal(item, &c) != nil {
			others = append(others, item)
			continue
		}
		if text, is := c.text(); is {
			texts = append(texts, text)
			size += b.of(text) + betweenTexts
			chars += bound{}.of(text)
		} else {
			others = append(others, item)
		}
	}
	if structured := fields["structuredContent"]; structured != nil && string(structured) != "null" && !says(texts, structured) {
		texts = append(texts, string(structured))
		size += b.of(texts[len(texts)-1]) + betweenTexts
	}
	size -= betweenTexts
	var isError bool
	_ = adapter.Unmarshal(fields["isError"], &isError)
	if size <= b.most || isError && chars < shortError {
		return result, false
	}
	whole := strings.Join(texts, "\n")
	text := whole
	if b.of(whole) > b.most { // otherwise it was many short ones
		tool, owner := s.readTool()
		text = b.cut(whole, tool, s.kept.keep(s, owner, whole))
	}
	first, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		panic(err)
	}
	put(fields, "content", append([]json.RawMessage{first}, others...))
	delete(fields, "structuredContent")
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw, true
}

// says reports whether the texts say all of the structured content: one of them is it, as the protocol
// recommends, or each of its fields is one of them, as many servers have it whose tools return text.
func says(texts []string, structured json.RawMessage) bool {
	var want, got any
	if json.Unmarshal(structured, &want) != nil {
		return false
	}
	for _, text := range texts {
		if json.Unmarshal([]byte(text), &got) == nil && reflect.DeepEqual(got, want) {
			return true
		}
	}
	fields, _ := want.(map[string]any)
	for _, value := range fields {
		if text, is := value.(string); !is || !slices.Contains(texts, text) {
			return false
		}
	}
	return len(fields) > 0
}

// boundedAnswer bounds the result in an answer of the server to a request with this method.
func (s *session) boundedAnswer(method string, m *message) *message {
	if m == nil || m.Result == nil || s.maxResult.most == 0 {
		return m
	}
	var raw []byte
	switch method {
	case "tools/call", "tasks/result":
		result, cut := s.bounded(m.Result)
		if !cut {
			return m
		}
		raw = with(m.raw, result, "result")
	case "tasks/get": // of 2026-07-28
		var task struct{ Result json.RawMessage }
		if adapter.Unmarshal(m.Result, &task) != nil || task.Result == nil {
			return m
		}
		result, cut := s.bounded(task.Result)
		if !cut {
			return m
		}
		raw = with(m.raw, result, "result", "result")
	default:
		return m
	}
	out := readMessage(raw)
	out.ID, out.about = m.ID, m.about
	return out
}
