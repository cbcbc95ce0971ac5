// Package texts makes text of what belongs to the caller: a detail, an error, the value of a panic. Their
// methods may wait for a lock that a stuck tool holds, never return, panic, end their goroutine, or write
// a hundred megabytes. So they are called beside the call that asks, for a bounded time, and what they
// return is cut.
package texts

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// Max is how many bytes of a text are shown.
	Max = 64 << 10
	// Patience is how long a method is waited for.
	Patience = time.Second
)

// missing is the text of a value whose method does not return, and ended that of one whose method has ended
// its goroutine.
const (
	missing = "(no text: the method of its value did not return in time)"
	ended   = "(no text: the method of its value called runtime.Goexit)"
)

// Of returns v as fmt.Sprint does, in the bounds of the package. A value whose method has not returned in
// time is not asked again before it has.
func Of(v any) string { return within(Patience, v) }

// Part is Of for what is part of a text that is made in the same way: it waits for less, so that the whole
// has time to say that the part is missing.
func Part(v any) string { return within(Patience/2, v) }

func within(patience time.Duration, v any) string {
	if text, ok := plain(v); ok {
		return Cut(text)
	}
	key, keyed := v, reflect.ValueOf(v).Comparable()
	if keyed && stuck.has(key) {
		return missing
	}
	text := make(chan string, 1)
	go func() {
		s := ended
		defer func() {
			text <- s
			if keyed {
				stuck.remove(key)
			}
		}()
		s = Cut(fmt.Sprint(v)) // which recovers from a panic of the method
	}()
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case s := <-text:
		return s
	case <-over.C:
	}
	if keyed {
		stuck.add(key)
		select {
		case s := <-text: // just now, and perhaps before add
			stuck.remove(key)
			return s
		default:
		}
	}
	return missing
}

// plain returns the text of a value that has no method of the caller's.
func plain(v any) (text string, ok bool) {
	if reflect.TypeOf(v) == plainError {
		return v.(error).Error(), true
	}
	switch v := v.(type) {
	case nil:
		return "<nil>", true
	case string:
		return v, true
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return fmt.Sprint(v), true
	}
	if t := reflect.TypeOf(v); t.Kind() == reflect.String && t.NumMethod() == 0 {
		return reflect.ValueOf(v).String(), true
	}
	return "", false
}

var plainError = reflect.TypeOf(errors.New(""))

// Cut cuts a text to Max bytes, and says how many more there were.
func Cut(text string) string {
	if len(text) <= Max {
		return text
	}
	head := strings.ToValidUTF8(text[:Max], "")
	return head + "... (" + strconv.Itoa(len(text)-len(head)) + " bytes more)"
}

// Ask calls f beside the call, for what it has to ask an error of the caller's, whose Is, As and Unwrap are
// the caller's code, too. It reports whether f has returned in time; if not, what f writes must not be read.
func Ask(f func()) bool {
	done := make(chan bool, 1)
	go func() {
		ok := false
		defer func() {
			_ = recover()
			done <- ok
		}()
		f()
		ok = true
	}()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case ok := <-done:
		return ok
	case <-patience.C:
		return false
	}
}

// stuck are the values whose methods have not returned in time. It has no channel that waits: a value may be
// asked for in several bubbles of testing/synctest.
var stuck values

type values struct {
	mu  sync.Mutex
	all map[any]int
}

func (s *values) has(v any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[v] > 0
}

func (s *values) add(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[any]int)
	}
	s.all[v]++
}

// remove undoes add, if there was one.
func (s *values) remove(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.all[v]; n > 1 {
		s.all[v] = n - 1
	} else {
		delete(s.all, v)
	}
}
