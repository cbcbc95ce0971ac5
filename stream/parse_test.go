package stream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
)

// Guarantee 5, for clients that parse events: whole events in order, wherever the bytes are split.
func TestEventsParsesWholeEvents(t *testing.T) {
	broken := errors.New("broken")
	const most = 30
	for _, tc := range []struct {
		name string
		from string
		then error // after from; nil is io.EOF
		want []stream.Event
		err  error
	}{
		{name: "nothing"},
		{name: "comments and a byte order mark", from: "\xef\xbb\xbf: hi\n\ndata: a\n\n", want: []stream.Event{{Data: []byte("a")}}},
		{name: "every end of a line", from: "data: a\r\rdata:b\r\n\r\ndata: c\n\n",
			want: []stream.Event{{Data: []byte("a")}, {Data: []byte("b")}, {Data: []byte("c")}}},
		{name: "several lines", from: "data: a\ndata\ndata:  b\n\n", want: []stream.Event{{Data: []byte("a\n\n b")}}},
		{name: "an id holds until the next", from: "id: 1\n\ndata: a\n\nid: 2\n\n",
			want: []stream.Event{{ID: "1"}, {ID: "1", Data: []byte("a")}, {ID: "2"}}},
		{name: "a name is that of one event", from: "event: ping\ndata: 1\n\ndata: 2\n\nevent: a\n\n",
			want: []stream.Event{{Name: "ping", Data: []byte("1")}, {Data: []byte("2")}, {Name: "a"}}},
		{name: "retry", from: "retry: 1500\n\nretry: x\ndata: a\n\n",
			want: []stream.Event{{Retry: 1500 * time.Millisecond}, {Data: []byte("a"), Retry: 1500 * time.Millisecond}}},
		{name: "cut off", from: "data: a\n\nid: 1\ndata: b\n", want: []stream.Event{{Data: []byte("a")}}},
		{name: "a failed read", from: "data: a\n\ndata: b", then: broken, want: []stream.Event{{Data: []byte("a")}, {}}, err: broken},
		{name: "the largest", from: "data: " + strings.Repeat("x", most-6) + "\n\n", want: []stream.Event{{Data: []byte(strings.Repeat("x", most-6))}}},
		{name: "one byte more", from: "data: a\n\ndata: " + strings.Repeat("x", most-5) + "\n\n",
			want: []stream.Event{{Data: []byte("a")}, {}}, err: stream.ErrEventTooLarge},
	} {
		for _, whole := range []bool{true, false} {
			var r io.Reader = strings.NewReader(tc.from)
			if tc.then != nil {
				r = io.MultiReader(r, iotest.ErrReader(tc.then))
			}
			if !whole {
				r = iotest.OneByteReader(r)
			}
			var got []stream.Event
			var last error
			for e, err := range stream.Events(r, most) {
				got, last = append(got, e), err
			}
			if d := cmp.Diff(tc.want, got); d != "" || !errors.Is(last, tc.err) || (tc.err == nil) != (last == nil) {
				t.Errorf("%s, in one piece %v: error %v, want %v\n%s", tc.name, whole, last, tc.err, d)
			}
		}
	}
}

func TestEventsStopsWithItsCaller(t *testing.T) {
	for e := range stream.Events(strings.NewReader("data: a\n\ndata: b\n\n"), 0) {
		if string(e.Data) != "a" {
			t.Errorf("%q after the break", e.Data)
		}
		break
	}
}

// SPEC 3.24: a reader that has neither bytes nor an error does not keep its caller for ever.
func TestEventsWithoutProgress(t *testing.T) {
	var got []error
	for _, err := range stream.Events(readNothing{}, 10) {
		got = append(got, err)
	}
	if len(got) != 1 || got[0] != io.ErrNoProgress {
		t.Errorf("%v, want one %v", got, io.ErrNoProgress)
	}
}

type readNothing struct{}

func (readNothing) Read([]byte) (int, error) { return 0, nil }

// A few reads of nothing are no error.
func TestEventsAfterReadsOfNothing(t *testing.T) {
	r := io.MultiReader(&few{left: maxEmpty - 1}, strings.NewReader("data: a\n\n"))
	for e, err := range stream.Events(r, 10) {
		if string(e.Data) != "a" || err != nil {
			t.Errorf("%q, %v", e.Data, err)
		}
	}
}

// maxEmpty is how many reads of nothing in a row are an error.
const maxEmpty = 100

type few struct{ left int }

func (f *few) Read([]byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.EOF
	}
	return 0, nil
}
