package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// resulting returns a server whose tool returns a result, in JSON.
func resulting(results ...string) *scripted {
	n := 0
	return &scripted{serve: func(r *scriptedRun, m *message) bool {
		if m.Method != "tools/call" {
			return false
		}
		r.answer(m, results[min(n, len(results)-1)])
		n++
		return true
	}}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func wireOf(t *testing.T, m *message) (w wire) {
	t.Helper()
	if err := json.Unmarshal(m.raw, &w); err != nil {
		t.Fatal(err)
	}
	w.raw = string(m.raw)
	return w
}

var lastLine = regexp.MustCompile(`\n\[(\S+ K?M?B) of (\S+ K?M?B) left out\. Call read_result with \{"id":"(scripted\.r[a-z2-7]{8})","offset":(\d+)\}; \{"id":"(scripted\.r[a-z2-7]{8})","grep":"PATTERN"\} searches it\.\]$`)

// readAll reads the rest of a result that was cut, and returns all of it.
func readAll(t *testing.T, h *scriptedHost, w wire, most int) string {
	t.Helper()
	text := w.text()
	found := lastLine.FindStringSubmatch(text)
	if found == nil || found[3] != found[5] {
		t.Fatalf("%.300q ... %.300q", text, text[max(len(text)-300, 0):])
	}
	offset, whole := "0", ""
	next := regexp.MustCompile(`\[Characters \d+ to \d+ of \d+(?:, the end\.|\. Call read_result with \{"id":"[^"]*","offset":(\d+)\} to read on\.)\]$`)
	for n := 0; offset != ""; n++ {
		w := wireOf(t, h.answered(fmt.Sprintf(`"read %d"`, n), "tools/call", fmt.Sprintf(`{"name":"read_result","arguments":{"id":"%s","offset":%s}}`, found[3], offset)))
		at := next.FindStringSubmatchIndex(w.text())
		if w.Result.IsError || at == nil || (bound{}).of(w.text()) > most {
			t.Fatalf("%.300s", w.text())
		}
		piece := w.text()[:at[0]]
		offset = ""
		if at[2] >= 0 {
			offset = w.text()[at[2]:at[3]]
		}
		whole += piece
		if n > 10_000 {
			t.Fatal("endless")
		}
	}
	return whole
}

// SPEC 16.5: nothing is cut at the bound, and what is larger keeps within it.
func TestMaxResult(t *testing.T) {
	lines := strings.Repeat("a line of a file\n", 10_000)
	for _, tc := range []struct {
		name, result string
		cut          bool
	}{
		{"at the bound", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 2000) + `"}]}`, false},
		{"one over", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 2001) + `"}]}`, true},
		{"escapes at the bound", `{"content":[{"type":"text","text":` + quoted(strings.Repeat("\n", 1000)) + `}]}`, false},
		{"escapes over", `{"content":[{"type":"text","text":` + quoted(strings.Repeat("\"", 1001)) + `}]}`, true},
		{"one huge line", `{"content":[{"type":"text","text":"` + strings.Repeat("é", 100_000) + `"}]}`, true},
		{"lines", `{"content":[{"type":"text","text":` + quoted(lines) + `}]}`, true},
		{"emoji", `{"content":[{"type":"text","text":"` + strings.Repeat("👩‍👩‍👧", 3000) + `"}]}`, true},
		{"half an emoji", `{"content":[{"type":"text","text":"` + strings.Repeat(`\ud83d`, 3000) + `"}]}`, true},
		{"no UTF-8", `{"content":[{"type":"text","text":"` + strings.Repeat("\xff", 3000) + `"}]}`, true},
		{"control characters", `{"content":[{"type":"text","text":"` + strings.Repeat(`\u0001`, 3000) + `"}]}`, true},
		{"many short texts", `{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 2999) + `{"type":"text","text":"x"}]}`, true},
		{"an error", `{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("x", 9999) + `"}]}`, false},
		{"a long error", `{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("x", 10_000) + `"}]}`, true},
		{"an image", `{"content":[{"type":"image","data":"` + strings.Repeat("x", 10_000) + `","mimeType":"image/png"}]}`, false},
		{"a file", `{"content":[{"type":"resource","resource":{"uri":"x:y","text":` + quoted(lines) + `}}]}`, true},
		{"only structured", `{"content":[],"structuredContent":{"x":` + quoted(lines) + `}}`, true},
		{"no content", `{"x":"` + strings.Repeat("x", 10_000) + `"}`, false},
		{"odd content", `{"content":"` + strings.Repeat("x", 10_000) + `"}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := connectScripted(t, resulting(tc.result), "-max-result", "2000").initialized()
			m := h.answered("1", "tools/call", `{"name":"a"}`)
			if !tc.cut {
				if string(m.Result) != tc.result {
					t.Errorf("%.200s", m.Result)
				}
				return
			}
			w := wireOf(t, m)
			if n := (bound{}).of(w.text()); n > 2000 || n < 1000 || !utf8.Valid(m.raw) || w.Result.StructuredContent != nil {
				t.Errorf("%d characters of %.300s", n, m.raw)
			}
			var parsed struct {
				Content    []content
				Structured json.RawMessage `json:"structuredContent"`
			}
			_ = json.Unmarshal([]byte(tc.result), &parsed)
			var texts []string
			for _, c := range parsed.Content {
				text, _ := c.text()
				texts = append(texts, text)
			}
			if parsed.Structured != nil {
				texts = append(texts, string(parsed.Structured))
			}
			whole := strings.Join(texts, "\n")
			if got := readAll(t, h, w, 2000); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(whole, "\n") && strings.ReplaceAll(got, "\n", "") != strings.ReplaceAll(whole, "\n", "") {
				t.Errorf("%d characters of %d", len(got), len(whole))
			}
		})
	}
}

// Structured content that a text says is not there twice.
func TestSays(t *testing.T) { // SPEC 16.5
	for _, tc := range []struct {
		structured string
		want       bool
	}{
		{`{"a": 1}`, true}, {`{"a":2}`, false}, {`{"content":"text"}`, true}, {`{"content":"text","n":1}`, false},
		{`{"content":"other"}`, false}, {`{}`, false}, {`[1]`, false},
	} {
		if got := says([]string{`{"a":1}`, "text"}, json.RawMessage(tc.structured)); got != tc.want {
			t.Errorf("%s: %v", tc.structured, got)
		}
	}
}

// SPEC 16.5: head and tail are 60 to 40, at line ends, and the offset is where the head ends.
func TestHeadAndTail(t *testing.T) {
	var whole strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&whole, "line %d é\n", i)
	}
	h := connectScripted(t, resulting(`{"content":[{"type":"text","text":`+quoted(whole.String())+`},{"type":"image","data":"eA==","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"y"}],"structuredContent":{"a":1},"_meta":{"k":1}}`), "-max-result", "10000").initialized()
	m := h.answered("1", "tools/call", `{"name":"a"}`)
	w := wireOf(t, m)
	head, tail, found := strings.Cut(w.Result.Content[0].Text, "\n[...]\n")
	share := float64(len(head)) / float64(len(head)+len(tail))
	if !found || share < 0.57 || share > 0.62 || !strings.HasPrefix(whole.String(), head+"\n") || !regexp.MustCompile(`^line \d+ é\n`).MatchString(tail) {
		t.Errorf("%f of %.100s ... %.100s", share, head, tail)
	}
	if offset := lastLine.FindStringSubmatch(w.Result.Content[0].Text)[4]; offset != fmt.Sprint(utf8.RuneCountInString(head)+1) {
		t.Error(offset)
	}
	for _, kept := range []string{`{"type":"image","data":"eA==","mimeType":"image/png"}`, `{"type":"resource_link","uri":"x:y","name":"y"}`, `"_meta":{"k":1}`} {
		if !strings.Contains(string(m.raw), kept) {
			t.Errorf("%s is not in %.200s", kept, m.raw)
		}
	}
	if strings.Contains(string(m.raw), "structuredContent") {
		t.Error("it has structured content")
	}
}

// read calls the tool that reads.
func (h *scriptedHost) read(id, arguments string) wire {
	h.t.Helper()
	return wireOf(h.t, h.answered(id, "tools/call", `{"name":"read_result","arguments":`+arguments+`}`))
}

func TestReadResult(t *testing.T) { // SPEC 16.5
	long := strings.Repeat("y", 70_000) + "needle" + strings.Repeat("z", 70_000) // more than maxMatched on each side
	text := strings.Repeat("one <b>\n", 400) + "néedle 1\n" + long + "\n" + strings.Repeat("needle\n", 400)
	result := func(text string) string { return `{"content":[{"type":"text","text":` + quoted(text) + `}]}` }
	h := connectScripted(t, resulting(result(text), result(strings.Repeat("y", 5000))), "-max-result", "1000", "-idle", "0").initialized()
	w := wireOf(t, h.answered("1", "tools/call", `{"name":"a"}`))
	id := `"id":"` + lastLine.FindStringSubmatch(w.text())[3] + `"`
	runes := []rune(text)
	for _, tc := range []struct{ name, arguments, says string }{
		{"a piece", `{` + id + `,"offset":3200,"limit":8}`, `^néedle 1\n\[Characters 3200 to 3208 of ` + fmt.Sprint(len(runes)) + `\. Call `},
		{"numbers as floats", `{` + id + `,"offset":3.2e3,"limit":8.0}`, `^néedle 1\n`},
		{"the end", `{` + id + `,"offset":` + fmt.Sprint(len(runes)-7) + `}`, `^needle\n\[Characters \d+ to \d+ of \d+, the end\.\]$`},
		{"after the end", `{` + id + `,"offset":` + fmt.Sprint(len(runes)) + `}`, `^\[Characters \d+ to \d+ of \d+, the end\.\]$`},
		{"a limit that is too large", `{` + id + `,"limit":1e300}`, `^(one <b>\n)+\[Characters 0 to \d+ of`},
		{"nothing", `{` + id + `,"limit":0}`, `^\[Characters 0 to 0 of`},
		{"a search", `{` + id + `,"grep":"n.edle"}`, `^3200: néedle 1\n73\d\d\d: y{100}needlez+\.\.\.\n143216: needle\n(\d+: needle\n)*\[More lines match\. Call read_result with \{"id":"[^"]+","grep":"n\.edle","offset":\d+\} to search on\.\]$`},
		{"a search from there", `{` + id + `,"grep":"^needle$","offset":` + fmt.Sprint(len(runes)-14) + `}`, `^\d+: needle\n\d+: needle\n\[2 lines match\.\]$`},
		{"a search for nothing", `{` + id + `,"grep":"no such"}`, `^\[0 lines match\.\]$`},
		{"a search across the pieces of a line", `{` + id + `,"grep":"y{10}needlez{10}"}`, `^\d+: y+needlez`},
		{"a search with a limit", `{` + id + `,"grep":"(?i)NEEDLE","limit":100}`, `^\d+: y+\n\[More lines match\.`},
	} {
		w := h.read(`"`+tc.name+`"`, tc.arguments)
		if w.Result.IsError || !regexp.MustCompile(tc.says).MatchString(w.text()) || (bound{}).of(w.text()) > 1000 {
			t.Errorf("%s: %.400s", tc.name, w.text())
		}
	}
	for _, tc := range []struct{ arguments, says string }{
		{`{}`, `"id" is missing`},
		{`{"id":7}`, `want {"id": text`},
		{`[]`, `want {"id": text`},
		{`{"id":"scripted.rxxxxxxxx"}`, `no result with the id "scripted.rxxxxxxxx": results are kept until the session ends, and up to 67 MB`},
		{`{"id":"other.rxxxxxxxx"}`, `is one of the server other: call that server's tool`},
		{`{` + id + `,"offset":-1}`, `offset=-1: want a whole number from 0 to ` + fmt.Sprint(len(runes))},
		{`{` + id + `,"offset":1.5}`, `offset=1.5: want a whole number`},
		{`{` + id + `,"offset":1e9}`, `offset=1000000000: want a whole number from 0 to`},
		{`{` + id + `,"limit":-5}`, `limit=-5: want`},
		{`{` + id + `,"grep":"("}`, `want a regular expression in RE2 syntax`},
		{`{` + id + `,"grep":"(?=x)"}`, `want a regular expression in RE2 syntax`},
		{`{` + id + `,"grep":"` + strings.Repeat("x", 201) + `"}`, `at most 200 bytes, got 201`},
		{`{` + id + `,"grep":"((a{10}){10}b{100}){9}"}`, `want a simpler pattern`},
		{`{` + id + `,"grep":7}`, `want {"id": text`},
	} {
		if w := h.read(`"x"`, tc.arguments); !w.Result.IsError || !strings.Contains(w.text(), tc.says) {
			t.Errorf("%s: %.300s", tc.arguments, w.text())
		}
	}
	// Patterns that other engines take for ever for.
	id = `"id":"` + lastLine.FindStringSubmatch(wireOf(t, h.answered("2", "tools/call", `{"name":"a"}`)).text())[3] + `"`
	begun := time.Now()
	for _, pattern := range []string{`(a+)+$`, `(y|y)*x`, `(.*)*(.*)*nope`, `(\\w+\\s?)+!`, `.{1,300}nope`} {
		h.read(`"evil"`, `{`+id+`,"grep":"`+pattern+`"}`)
	}
	if took := time.Since(begun); took > generous {
		t.Errorf("%v", took)
	}
}

// SPEC 16.5: the list has the tool, says that it only reads, and has no output schema. The sizes are those of
// the server, or what is asked for.
func TestMaxResultList(t *testing.T) {
	tools := func(int) string {
		return `[{"name":"a","outputSchema":{"type":"object"},"_meta":{"anthropic/maxResultSizeChars":7}},{"name":"b"}]`
	}
	h := connectScripted(t, &scripted{tools: tools}, "-max-result", "9KB", "-declare=false", "-declare-max-result", "200000").initialized()
	var got struct {
		Tools []struct {
			Name         string
			OutputSchema json.RawMessage
			Meta         map[string]int `json:"_meta"`
			Annotations  map[string]bool
		}
	}
	if err := json.Unmarshal(h.answered("1", "tools/list", `{}`).Result, &got); err != nil {
		t.Fatal(err)
	}
	sizes := make(map[string]int)
	for _, tool := range got.Tools {
		sizes[tool.Name] = tool.Meta["anthropic/maxResultSizeChars"]
		if tool.OutputSchema != nil {
			t.Errorf("%s has an output schema", tool.Name)
		}
	}
	if d := cmp.Diff(map[string]int{"a": 7, "b": 200000, "read_result": 200000}, sizes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]bool{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}, got.Tools[2].Annotations); d != "" {
		t.Error(d)
	}

	// Without the flags the list is the server's.
	plain := connectScripted(t, &scripted{tools: tools}, "-declare=false").initialized()
	if m := plain.answered("1", "tools/list", `{}`); string(m.Result) != `{"tools":`+tools(1)+`}` {
		t.Errorf("%s", m.raw)
	}
	// A tool of the server with the name keeps it, and a host that does not prefix names has none twice.
	for _, h := range []*scriptedHost{
		connectScripted(t, &scripted{tools: func(int) string { return `[{"name":"read_result"}]` }}, "-max-result", "9KB"),
		connectScripted(t, new(scripted), "-max-result", "9KB", "-host", "continue"),
	} {
		h.initialized()
		if m := h.answered("1", "tools/list", `{}`); !regexp.MustCompile(`"read_result_scripted_[a-z2-7]{6}"`).Match(m.raw) {
			t.Errorf("%s", m.raw)
		}
	}
}

func TestParseBound(t *testing.T) {
	for value, want := range map[string]bound{"40000": {40000, false}, "40000chars": {40000, false}, "9KB": {9000, true}, "1000": {1000, false}, "0": {}, "0KB": {bytes: true}} {
		if got, err := parseBound("-max-result", value); got != want || err != nil {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "x", "-1", "999", "1e5", "9MB", "9kb", "99999999999", "3000000KB", "KB", "1.5KB"} {
		if got, err := parseBound("-max-result", value); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("-max-result=%q: want", value)) {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
}

// SPEC 16.5: what is kept is bounded in bytes, the oldest goes first, and a session reads its own.
func TestResultStore(t *testing.T) {
	r := &resultStore{most: 100}
	one, two := &session{name: "1"}, &session{name: "2"}
	text := func(n int) string { return strings.Repeat(fmt.Sprint(n), 40) }
	a, b := r.keep(one, "x", text(1)), r.keep(two, "x", text(1))
	if again := r.keep(one, "x", text(1)); a == b || again != a {
		t.Errorf("%s, %s, %s", a, b, again)
	}
	if _, found := r.get(two, a); found {
		t.Error("it is the other session's")
	}
	c := r.keep(one, "x", text(2)) // b is the oldest now
	for id, want := range map[string]bool{a: true, b: false, c: true} {
		if _, one := r.get(one, id); one != want {
			t.Errorf("%s: %v", id, one)
		}
	}
	large := r.keep(two, "x", strings.Repeat("x", 1000)) // larger than all, and alone
	if _, found := r.get(two, large); !found || r.order.Len() != 1 || r.size != 1000 {
		t.Errorf("%d bytes in %d", r.size, r.order.Len())
	}
	r.forget(two)
	if r.size != 0 || len(r.byID)+len(r.same)+r.order.Len() != 0 {
		t.Errorf("%d bytes", r.size)
	}
}
