package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// A wall is a stream that nobody reads until it is closed.
type wall chan struct{}

func (w wall) Write(p []byte) (int, error) {
	<-w
	return len(p), nil
}

// SPEC 6.11: messages that nobody reads delay the signal that they announce by no more than one of them. The last one,
// about lost output, waits once more for its reader.
func TestMessagesThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, stream := time.Now(), make(wall)
		defer close(stream)
		r := &reporter{name: "deadline", out: stream}
		for range 3 {
			r.say("a message")
		}
		if d := time.Since(begun); d != stuck {
			t.Errorf("three messages took %v", d)
		}
		r.fail("lost 5 bytes")
		if d := time.Since(begun); d != 2*stuck {
			t.Errorf("four messages took %v", d)
		}
		if !r.hasFailed() {
			t.Error("lost messages are no failure")
		}
	})
}

// A message comes after one that was read late.
func TestMessageThatIsReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := make(wall)
		r := &reporter{name: "deadline", out: stream}
		r.say("a message")
		close(stream)
		synctest.Wait()
		begun := time.Now()
		r.say("another")
		if d := time.Since(begun); d != 0 || r.pending != nil {
			t.Errorf("a message that can be written took %v", d)
		}
	})
}
