package texts_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hostile is a value whose methods call a function of the test's, as a detail or an error may.
type hostile struct{ do func() string }

func (h *hostile) String() string { return h.do() }
func (h *hostile) Error() string  { return h.do() }

// A stuckSlice and a stuckStruct cannot be compared, and a stuckFloat that is no number is not equal to itself.
type (
	stuckSlice  []func() string
	stuckMap    map[int]func() string
	stuckFunc   func() string
	stuckStruct struct{ do []func() string }
	stuckFloat  struct {
		f  float64
		do *func() string
	}
)

func (v stuckSlice) String() string  { return v[0]() }
func (v stuckMap) String() string    { return v[0]() }
func (v stuckFunc) String() string   { return v() }
func (v stuckStruct) String() string { return v.do[0]() }
func (v stuckFloat) String() string  { return (*v.do)() }

// SPEC 3.25: a value whose method does not return is asked once, however often its text is wanted.
func TestHostileValueIsAskedOnce(t *testing.T) {
	for name, made := range map[string]func(do func() string) any{
		"pointer":          func(do func() string) any { return &hostile{do} },
		"slice":            func(do func() string) any { return stuckSlice{do} },
		"map":              func(do func() string) any { return stuckMap{0: do} },
		"function":         func(do func() string) any { return stuckFunc(do) },
		"struct of slices": func(do func() string) any { return stuckStruct{[]func() string{do}} },
		"not a number":     func(do func() string) any { return stuckFloat{math.NaN(), &do} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var asked atomic.Int32
				v := made(func() string { asked.Add(1); <-release; return "late" })
				for range 100 {
					if text := texts.Of(v); !strings.Contains(text, "did not return in time") {
						t.Errorf("%q", text)
					}
				}
				if asked.Load() != 1 {
					t.Errorf("asked %d times", asked.Load())
				}
				close(release)
				time.Sleep(time.Second)
				if text := texts.Of(v); text != "late" {
					t.Errorf("%q", text)
				}
			})
		})
	}
}

// SPEC 3.25: many values that give no text, as those of the tools that wait for one lock, are no more than a few
// seconds and a few goroutines in all.
func TestManyHostileValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked atomic.Int32
		begun := time.Now()
		for range 1000 {
			texts.Of(&hostile{func() string { asked.Add(1); <-release; return "late" }})
		}
		if took := time.Since(begun); took > 4*texts.Patience || asked.Load() > 16 {
			t.Errorf("%d methods were waited for, %v", asked.Load(), took)
		}
		close(release)
		time.Sleep(time.Second)
		if text := texts.Of(&hostile{func() string { return "a text" }}); text != "a text" {
			t.Errorf("%q", text)
		}
	})
}

// SPEC 3.25: a value that contains itself has no text, and does not end the process by an overflow of the stack.
func TestValuesThatContainThemselves(t *testing.T) {
	slice, table := make([]any, 1), map[string]any{}
	slice[0], table["self"] = slice, table
	pair := &struct{ next any }{}
	pair.next = &slice
	wide := []any{1}
	for range 64 {
		wide = []any{wide, wide}
	}
	for name, tt := range map[string]struct {
		v    any
		ends bool
	}{
		"slice": {slice, false}, "map": {table, false}, "struct": {struct{ a any }{table}, false}, "pointer": {&slice, false}, "many parts": {wide, false},
		"pointer below": {pair, true}, "a tree": {map[string]any{"a": []any{1, "b", nil}}, true}, "bytes": {make([]byte, 200_000), true},
	} {
		if text := texts.Of(tt.v); strings.Contains(text, "contains itself") == tt.ends {
			t.Errorf("%s: %.100s", name, text)
		}
	}
}

// SPEC 3.25: a text is bounded in size, with a count of what was cut.
func TestLongText(t *testing.T) {
	const more = 1000
	text := texts.Of(&hostile{func() string { return strings.Repeat("x", texts.Max+more) }})
	kept := strings.Count(text, "x")
	if len(text) > texts.Max+100 || !strings.Contains(text, fmt.Sprintf("(%d bytes more)", texts.Max+more-kept)) {
		t.Errorf("%d bytes, of which %d are kept: %s", len(text), kept, text[len(text)-50:])
	}
}

// SPEC 3.25: nobody asks for the text of a detail that the verb does not show.
func TestHostileDetailIsNotAskedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &hostile{func() string { t.Error("asked"); return "" }}
		err := &timeout.Error{Kind: timeout.ErrTotal, Limit: time.Second, Figures: timeout.Figures{Detail: v}, Err: v, Cause: v}
		for _, verb := range []string{"%v", "%s", "%q", "%x", "%d"} {
			_ = fmt.Sprintf(verb, err)
		}
	})
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"5":                                  "5",
		strings.Repeat("x", 64):              strings.Repeat("x", 64),
		strings.Repeat("x", 65):              strings.Repeat("x", 64) + "...",
		strings.Repeat("x", 63) + "\u00e9yz": strings.Repeat("x", 63) + "...",
	} {
		if got := texts.Short(text, 64); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
