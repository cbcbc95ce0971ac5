package sdnotify_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// SPEC 18.2: the protocol of sd_notify(3).
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, datagram string
		want           sdnotify.Message
	}{
		{"nothing", "", sdnotify.Message{}},
		{"a heartbeat", "WATCHDOG=1", sdnotify.Message{Beat: true}},
		{"a heartbeat with a line end", "WATCHDOG=1\n", sdnotify.Message{Beat: true}},
		{"no heartbeat", "WATCHDOG=trigger\nWATCHDOG=11\nWATCHDOG\nWATCHDOG_USEC=5", sdnotify.Message{}},
		{"states", "READY=1\nSTOPPING=1", sdnotify.Message{Ready: true, Stopping: true}},
		{"no states", "READY=0\nSTOPPING=yes\nready=1\n READY=1", sdnotify.Message{}},
		{"a status", "STATUS=step 3 of 7 = done", sdnotify.Message{Status: "step 3 of 7 = done", Said: true}},
		{"an empty status", "STATUS=", sdnotify.Message{Said: true}},
		{"the last status counts", "STATUS=a\nSTATUS=b", sdnotify.Message{Status: "b", Said: true}},
		{"a status for a terminal", "STATUS=a\x1b[2Jb\x00\xff", sdnotify.Message{Status: "a [2Jb \uFFFD", Said: true}},
		{"a long status", "STATUS=" + strings.Repeat("x", 2047) + "é", sdnotify.Message{Status: strings.Repeat("x", 2047), Said: true}},
		{"a key alone", "STATUS\nREADY\nEXTEND_TIMEOUT_USEC", sdnotify.Message{}},
		{"more time", "EXTEND_TIMEOUT_USEC=1500000", sdnotify.Message{Extend: 1500 * time.Millisecond, Extended: true}},
		{"no more time", "EXTEND_TIMEOUT_USEC=0", sdnotify.Message{Extended: true}},
		{"all time", "EXTEND_TIMEOUT_USEC=18446744073709551615", sdnotify.Message{Extend: math.MaxInt64 / 1000 * time.Microsecond, Extended: true}},
		{"no time", "EXTEND_TIMEOUT_USEC=-1\nEXTEND_TIMEOUT_USEC=1s\nEXTEND_TIMEOUT_USEC=\nEXTEND_TIMEOUT_USEC=99999999999999999999", sdnotify.Message{}},
		{"several", "READY=1\nSTATUS=up\nWATCHDOG=1", sdnotify.Message{Ready: true, Status: "up", Said: true, Beat: true}},
		{"what is unknown", "MAINPID=4711\nERRNO=2\nFDSTORE=1\n\n=\nBARRIER=1\nX_OWN=1\nWATCHDOG=1", sdnotify.Message{Beat: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, sdnotify.Parse([]byte(tt.datagram))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			agree(t, []byte(tt.datagram), tt.want)
		})
	}
}

// agree compares what Says and Parse find in a datagram. What has a key may have a value that cannot be read.
func agree(t *testing.T, b []byte, m sdnotify.Message) {
	t.Helper()
	for i, want := range []bool{m.Beat, m.Ready, m.Stopping, m.Said, m.Extended} {
		if got := sdnotify.Says(b)[i]; got != want && (want || i < 4) {
			t.Errorf("%q: Says finds %v, and Parse %+v", b, sdnotify.Says(b), m)
		}
	}
}

// What is sent is read as it was meant, and a status is always one line of text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "WATCHDOG=1", "READY=1\nSTATUS=a\x1b[2J\xff\nEXTEND_TIMEOUT_USEC=7", "STOPPING=1\nSTATUS=\n", "WATCHDOG=1WATCHDOG=1", "aSTATUS=STATUS=", "STATUS"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := sdnotify.Parse(b)
		if strings.ContainsFunc(m.Status, unicode.IsControl) || !utf8.ValidString(m.Status) || m.Status != "" && !m.Said {
			t.Errorf("%q: the status is %q", b, m.Status)
		}
		agree(t, b, m)
		if m.Extend < 0 || m.Extend > 0 && !m.Extended {
			t.Errorf("%q: %+v", b, m)
		}
		if diff := cmp.Diff(m, sdnotify.Parse([]byte(m.String()))); diff != "" {
			t.Errorf("%q is sent as %q (-want +got):\n%s", b, m, diff)
		}
	})
}
