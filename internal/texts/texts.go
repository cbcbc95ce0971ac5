// Package texts formats values of the caller: a detail, an error, the value of a panic. Their methods may wait for a
// lock that a stuck tool holds, never return, panic, call runtime.Goexit, or return a hundred megabytes. So they are
// called on a separate goroutine, for a bounded time, and the text that they return is cut.
package texts

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

const (
	// Max is the number of bytes to which Cut shortens a text.
	Max = 64 << 10
	// Patience is the longest time that a caller waits for a method.
	Patience = time.Second
)

// The texts of values that cannot be formatted. failed is for a method that panics with a value whose own method
// panics; fmt formats any other panic. endless is for a value with which fmt might overflow the stack.
const (
	missing = "(no text: the method of its value did not return in time)"
	ended   = "(no text: the method of its value called runtime.Goexit)"
	failed  = "(no text: the method of its value panicked)"
	endless = "(no text: its value contains itself, or is too large)"
)

// Of returns the text of fmt.Sprint(v), cut to Max bytes, except that it returns "" for nil, and a float64 in few digits,
// as package human does. If a method of v does not return in time, panics or calls
// runtime.Goexit, Of returns a text that says so. While a call of the method is stuck, Of does not call it again; it
// also calls none for a type of which mostStuck values are stuck.
func Of(v any) string { return within(Patience, v) }

// Part is Of for a part of a larger text that is itself made under a time limit. It waits for half of the time, so that
// the rest of the larger text can be completed if the part is missing.
func Part(v any) string { return within(Patience/2, v) }

// Made is Of for a text that f returns. It calls f even if earlier calls are stuck.
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
	q := &question{value: keyOf(v), typ: typeKey{reflect.TypeOf(v)}}
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
	// Values of one type often wait for the same lock. So the more of them are stuck, the shorter is the wait for
	// the next one: a page with many of them must be complete in time.
	if s, ok := await(text, patience/time.Duration(1+others)); ok {
		return s
	}
	stuck.add(q)
	return missing
}

// A value of more than mostParts parts, or in which parts are nested more than mostDepth deep, is not formatted. Its
// text would be longer than Max, or too deeply nested for a person to read.
const (
	mostParts = 100_000
	mostDepth = 1000
)

// ends reports whether fmt can format v, which may contain itself, without overflowing the stack. A program cannot
// recover from such an overflow. ends visits the parts that fmt visits. left is the number of parts that it may still
// visit: ends also returns false if there are more, or if they are nested deeper than mostDepth.
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

// answer sends the result of f, cut to Max bytes, or a text that says why there is none. fmt recovers from a panic of
// a method, but not if the method of the panic's value panics, too.
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

// await receives a text. It returns false if none comes in time.
func await(text <-chan string, patience time.Duration) (s string, ok bool) {
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case s := <-text:
		return s, true
	case <-over.C:
	}
	select {
	case s := <-text: // it came together with the end of the time
		return s, true
	default:
		return "", false
	}
}

// plain returns the text of a value that can be formatted without calling a method of the caller. ok is false for
// other values.
func plain(v any) (text string, ok bool) {
	if reflect.TypeOf(v) == plainError {
		return v.(error).Error(), true
	}
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case float64:
		return human.Number(v), true
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32:
		return fmt.Sprint(v), true
	}
	if t := reflect.TypeOf(v); t.Kind() == reflect.String && t.NumMethod() == 0 {
		return reflect.ValueOf(v).String(), true
	}
	return "", false
}

var plainError = reflect.TypeOf(errors.New(""))

// Cut returns text, or its first Max bytes and a note of how many bytes are left out.
func Cut(text string) string {
	if len(text) <= Max {
		return text
	}
	head := strings.ToValidUTF8(text[:Max], "")
	return head + "... (" + strconv.Itoa(len(text)-len(head)) + " bytes more)"
}

// Short returns text for a message: of a long text only the first most bytes, followed by "...".
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Line returns text with a space for each control character, so that it is one line, and harmless on a terminal.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Name returns a name that comes from elsewhere as a part of a line: cut to 256 bytes, and quoted if a character of it
// is not printable.
func Name(name string) string {
	name = Short(name, 256)
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Ask calls f on a separate goroutine, for up to Patience. It is for calls of errors.Is and errors.As, which run
// methods of the caller's errors. Ask reports whether f returned in time, without a panic or Goexit. If it did not, do
// not read the variables that f writes.
func Ask(f func()) bool {
	const returned = "f has returned"
	text := make(chan string, 1)
	go answer(text, func() string {
		f()
		return returned
	})
	s, _ := await(text, Patience)
	return s == returned
}

// mostStuck bounds the stuck values of one type, each of which keeps a goroutine. While so many are stuck, Of calls no
// method of the type's values.
const mostStuck = 16

// stuck counts the values whose methods have not returned in time. It uses a mutex and no channel, because several
// bubbles of testing/synctest may use it.
var stuck = values{stuckCount: make(map[any]int)}

type values struct {
	mu         sync.Mutex
	stuckCount map[any]int // by value and by type
}

// A question is a call that formats a value.
type question struct {
	value, typ any // the keys of the value and of its type in stuckCount

	// Guarded by the lock of stuck.
	over, added bool // the call has returned; it is counted in stuckCount
}

type typeKey struct{ reflect.Type }

// keyOf returns the key of a value in stuckCount: the value itself if it is comparable, or the address of a slice, a
// map or a function. All other values of one type share a key.
func keyOf(v any) any {
	at := reflect.ValueOf(v)
	if at.Comparable() && v == v { // v == v excludes NaN
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

// mayAsk reports whether the call may be made: the value is not stuck, and fewer than mostStuck values of its type are.
// others is the number of values of the type that are stuck.
func (s *values) mayAsk(q *question) (others int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others = s.stuckCount[q.typ]
	return others, others < mostStuck && s.stuckCount[q.value] == 0
}

// add counts the value of q as stuck, unless the call has returned meanwhile.
func (s *values) add(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.over {
		q.added = true
		s.stuckCount[q.value]++
		s.stuckCount[q.typ]++
	}
}

// remove records that the call has returned, and undoes add.
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
