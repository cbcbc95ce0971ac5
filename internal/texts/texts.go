// Package texts makes text of what belongs to the caller: a detail, an error, the value of a panic. Their
// methods may wait for a lock that a stuck tool holds, never return, panic, end their goroutine, or write
// a hundred megabytes. So they are called on a goroutine of their own, for a bounded time, and what they
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

// missing is the text of a value whose method does not return, ended that of one whose method has ended its
// goroutine, failed that of one whose method has panicked with a value whose own method panics, and endless that of
// one of which fmt would overflow the stack.
const (
	missing = "(no text: the method of its value did not return in time)"
	ended   = "(no text: the method of its value called runtime.Goexit)"
	failed  = "(no text: the method of its value panicked)"
	endless = "(no text: its value contains itself, or is too large)"
)

// Of returns v as fmt.Sprint does, in the bounds of the package. A value whose method has not returned in
// time is not asked again before it has, and no value of a type of which mostStuck have not.
func Of(v any) string { return within(Patience, v) }

// Part is Of for what is part of a text that is made in the same way: it waits for less, so that the whole
// has time to say that the part is missing.
func Part(v any) string { return within(Patience/2, v) }

// Made is Of for a text that f makes.
func Made(f func() string) string {
	text := make(chan string, 1)
	go answer(text, f)
	if s, ok := await(text, Patience); ok {
		return s
	}
	return missing
}

func within(patience time.Duration, v any) string {
	if text, ok := plain(v); ok {
		return Cut(text)
	}
	q := newQuestion(v)
	others, ok := stuck.mayAsk(q)
	if !ok {
		return missing
	}
	text := make(chan string, 1)
	go func() {
		defer stuck.remove(q)
		answer(text, func() string {
			left := mostParts
			if !ends(reflect.ValueOf(v), 0, &left) {
				return endless
			}
			return fmt.Sprint(v)
		})
	}()
	// Values of one type often wait for the same lock. So that a page with many of them comes in time, each is
	// waited for less than the one before.
	if s, ok := await(text, patience/time.Duration(1+others)); ok {
		return s
	}
	stuck.add(q)
	return missing
}

// mostParts and mostDepth are how many parts of a value are printed, and how deep: more are more than Max bytes, or
// nothing that a person would read.
const (
	mostParts = 100_000
	mostDepth = 1000
)

// ends reports whether fmt comes to the end of v, which may contain itself: a stack overflow ends the process, and
// nobody can recover from it. It goes where fmt goes.
func ends(v reflect.Value, depth int, left *int) bool {
	if *left--; *left < 0 || depth > mostDepth {
		return false
	}
	if v.IsValid() && v.CanInterface() {
		switch v.Interface().(type) {
		case fmt.Formatter, fmt.Stringer, error:
			return true // fmt calls the method
		}
	}
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || ends(v.Elem(), depth+1, left)
	case reflect.Pointer: // fmt follows only the outermost
		return depth > 0 || v.IsNil() || ends(v.Elem(), depth+1, left)
	case reflect.Struct:
		for i := range v.NumField() {
			if !ends(v.Field(i), depth+1, left) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() <= reflect.Complex128 {
			return true
		}
		for i := range v.Len() {
			if !ends(v.Index(i), depth+1, left) {
				return false
			}
		}
	case reflect.Map:
		for all := v.MapRange(); all.Next(); {
			if !ends(all.Key(), depth+1, left) || !ends(all.Value(), depth+1, left) {
				return false
			}
		}
	}
	return true
}

// answer sends what f returns. fmt recovers from a panic of a method, but not from one of the method of the
// value that the first has panicked with.
func answer(text chan<- string, f func() string) {
	s := ended
	defer func() {
		if recover() != nil {
			s = failed
		}
		text <- s
	}()
	s = Cut(f())
}

// await reports false if there is no text in time.
func await(text <-chan string, patience time.Duration) (s string, ok bool) {
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case s := <-text:
		return s, true
	case <-over.C:
	}
	select {
	case s := <-text: // just now
		return s, true
	default:
		return "", false
	}
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

// Ask calls f on a goroutine of its own. f asks an error of the caller's, whose Is, As and Unwrap methods are the
// caller's code. Ask reports whether f has returned in time; if not, what f writes must not be read.
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

// mostStuck is how many values of a type may have methods that do not return: each keeps a goroutine.
const mostStuck = 16

// stuck are the values whose methods have not returned in time. It has no channel that waits: a value may be
// asked for in several bubbles of testing/synctest.
var stuck = values{stuckCount: make(map[any]int)}

type values struct {
	mu         sync.Mutex
	stuckCount map[any]int // by value and by type
}

// A question is the one call of a value's method.
type question struct {
	value, typ any // keys

	// Under the lock of stuck.
	over, added bool
}

func newQuestion(v any) *question {
	return &question{value: keyOf(v), typ: typeKey{reflect.TypeOf(v)}}
}

type typeKey struct{ reflect.Type }

// keyOf returns the key by which a value is known: the value itself if it can be compared, and the address of a slice,
// a map or a function. Other values are known by their type alone.
func keyOf(v any) any {
	at := reflect.ValueOf(v)
	if at.Comparable() && v == v { // not a NaN
		return v
	}
	switch at.Kind() {
	case reflect.Slice, reflect.Map, reflect.Func:
		return placeKey{at.Type(), at.Pointer()}
	}
	return placeKey{Type: at.Type()}
}

type placeKey struct {
	reflect.Type
	at uintptr
}

// mayAsk returns how many values of the type are stuck, and false if this one is or there are too many.
func (s *values) mayAsk(q *question) (others int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others = s.stuckCount[q.typ]
	return others, others < mostStuck && s.stuckCount[q.value] == 0
}

// add adds a value, unless its method has returned meanwhile.
func (s *values) add(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.over {
		q.added = true
		s.stuckCount[q.value]++
		s.stuckCount[q.typ]++
	}
}

// remove undoes add.
func (s *values) remove(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.over = true
	if !q.added {
		return
	}
	for _, key := range []any{q.value, q.typ} {
		if s.stuckCount[key]--; s.stuckCount[key] == 0 {
			delete(s.stuckCount, key)
		}
	}
}
