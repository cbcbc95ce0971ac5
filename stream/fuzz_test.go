package stream_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
)

var lineEnd = regexp.MustCompile("\r\n|\n|\r")

// parse applies the standard's algorithm to a whole connection at once. It returns the events with
// their lines, and the last id.
func parse(conn, id string) (events []string, _ string) {
	conn = strings.TrimPrefix(conn, "\xef\xbb\xbf")
	lines := lineEnd.Split(conn, -1)
	var event strings.Builder
	next := id
	for _, line := range lines[:len(lines)-1] { // an unfinished line is dropped
		switch name, value, _ := strings.Cut(line, ":"); {
		case line == "" && event.Len() > 0:
			events = append(events, event.String())
			event.Reset()
			id = next
		case line == "" || line[0] == ':':
		default:
			event.WriteString(line + "\n")
			if value = strings.TrimPrefix(value, " "); name == "id" && !strings.Contains(value, "\x00") {
				next = value
			}
		}
	}
	return events, id
}

// Guarantee 5: however the bytes are split and wherever they are cut, the reader gets the whole
// events of each connection, and each request has the last id.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: a\n\ndata: b\r\n\r\n"), []byte("data: c\r\r"), uint8(1))
	f.Add([]byte("\xef\xbb\xbf: hi\n\nid: 2\nda"), []byte("\nid: 3\n\n"), uint8(2))
	f.Add([]byte("data: a\n\r"), []byte("\n\n\xef\xbb\xbfdata\n\n"), uint8(3))
	f.Add([]byte("id: \x00\nid\n\n"), []byte(":\r\n:\n\n"), uint8(7))
	f.Add([]byte("event: endpoint\ndata: /\n\n"), []byte("data: a\n\n"), uint8(9))
	f.Add([]byte("\xef\xbb"), []byte("\xef\xef\xbb\xbf:\n\n"), uint8(1))
	f.Add([]byte("id: 1\ndata: a\n"), []byte("id: 1\ndata: a\n\n"), uint8(4))
	f.Add([]byte("id:7\r\ndata:a\r\n\r\nd"), []byte("id\ndata: b\n\n"), uint8(1))
	f.Add([]byte("id: 3\nretry: 500\n\nid: 4\x00\ndata: b\n\n"), []byte("id: \x01\ndata: a\n\n"), uint8(5))
	f.Add([]byte("data: a\n\n\r"), []byte("\n\xef\xbb\xbfdata: b\n\n"), uint8(2))
	f.Add([]byte("\n\n\r\n\ndata: a\n\n\n\n"), []byte("data: a\r\rdata: b\r\r"), uint8(6))
	f.Fuzz(func(t *testing.T, a, b []byte, size uint8) {
		first, id := parse(string(a), "")
		events, ids := first, []string{"", header(id)}
		if !isSession(first) { // a session ends with its connection
			second, last := parse(string(b), id)
			events, ids = append(first, second...), append(ids, header(last))
			if len(first) == 0 && isSession(second) {
				ids = ids[:2]
			}
		} else {
			ids = ids[:1]
		}
		want := strings.Join(events, "\n")
		if want != "" {
			want += "\n"
		}
		synctest.Test(t, func(t *testing.T) {
			s := &server{script: []answer{conn(a, size), conn(b, size)}}
			got, _ := fetch(&http.Client{Transport: &stream.Notifications{Base: s, Idle: limit}}, get(t.Context()))
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if diff := cmp.Diff(ids, s.lastID); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// isSession reports whether the first event is that of a stream that is not reopened.
func isSession(events []string) bool {
	name := ""
	if len(events) > 0 {
		for line := range strings.Lines(events[0]) {
			if field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":"); field == "event" {
				name = strings.TrimPrefix(value, " ")
			}
		}
	}
	return name == "endpoint"
}

// header returns the id if net/http can send it.
func header(id string) string {
	for _, c := range []byte(id) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return ""
		}
	}
	return id
}

// conn answers with an event stream in pieces of at most size bytes.
func conn(p []byte, size uint8) answer {
	var parts []any
	for n := max(int(size), 1); len(p) > 0; p = p[min(n, len(p)):] {
		parts = append(parts, string(p[:min(n, len(p))]))
	}
	return events(parts...)
}
