package main

import (
	"strings"
	"testing"
)

// SPEC 3.1: a call without a sign of life ends with the documented message, and the messages of
// a stream are signs of life.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `unary: DeadlineExceeded: No progress for 1s (idle timeout). Tool should call heartbeat() during long work.
stream: DeadlineExceeded after 3 messages: No progress for 1s (idle timeout). Tool should call heartbeat() during long work.
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
