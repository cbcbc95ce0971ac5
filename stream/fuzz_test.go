package stream_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/stream"
)

var lineEnd = regexp.MustCompile("\r\n|\n|\r")

// parse is the standard's algorithm, on a whole connection at once: its events with
// their lines, and the last id after them.
func parse(conn, id string) (events []string, _ string) {
	conn = strings.TrimPrefix(conn, "\xef\xbb\xbf")
	lines := lineEnd.Split(conn, -1)
	var event strings.Builder
	next := id
	for _, line := range lines[:len(lines)-1] { // what has no end is not a line
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

// Guarantee 5: whatever is sent, in whatever pieces, and wherever it is cut, what comes
// out is the whole events of each connection.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: a\n\ndata: b\r\n\r\n"), []byte("data: c\r\r"), uint8(1))
	f.Add([]byte("\xef\xbb\xbf: hi\n\nid: 2\nda"), []byte("\nid: 3\n\n"), uint8(2))
	f.Add([]byte("data: a\n\r"), []byte("\n\n\xef\xbb\xbfdata\n\n"), uint8(3))
	f.Add([]byte("id: \x00\nid\n\n"), []byte(":\r\n:\n\n"), uint8(7))
	f.Add([]byte("\xef\xbb"), []byte("\xef\xef\xbb\xbf:\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, a, b []byte, size uint8) {
		first, id := parse(string(a), "")
		second, id := parse(string(b), id)
		want := strings.Join(append(first, second...), "\n")
		if want != "" {
			want += "\n"
		}
		got, gotID, ok := stream.Split(len(a)+len(b)+2, pieces(a, size), pieces(b, size))
		if !ok || string(got) != want || gotID != id {
			t.Errorf("%v, id %q, want %q; %q, want %q", ok, gotID, id, got, want)
		}
		// The bound holds, and what went before it is right. Two bytes are kept before it is
		// known that they are no byte order mark.
		limit := max(int(size), 2)
		got, _, _ = stream.Split(limit, pieces(a, size), pieces(b, size))
		if !strings.HasPrefix(want, string(got)) {
			t.Errorf("bounded: %q is not the beginning of %q", got, want)
		}
		for event := range bytes.SplitSeq(got, []byte("\n\n")) {
			if len(event) > limit {
				t.Errorf("bounded: an event of %d bytes, limit %d", len(event), limit)
			}
		}
	})
}

// pieces cuts p into pieces of at most size bytes.
func pieces(p []byte, size uint8) (all [][]byte) {
	for n := max(int(size), 1); len(p) > n; p = p[n:] {
		all = append(all, p[:n])
	}
	return append(all, p)
}
