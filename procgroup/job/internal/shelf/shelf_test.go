package shelf_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/shelf"
)

// A cupboard is a shelf of names, with what has gone.
type cupboard struct {
	shelf.Shelf[string]
	t        *testing.T
	maxItems int
	maxBytes int64

	mu   sync.Mutex
	gone []string
}

// put reserves room for a name, and returns its number, or 0.
func (c *cupboard) put(name string, bytes int64) int {
	id, ok := c.Reserve(bytes, c.maxItems, c.maxBytes, func(name string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gone = append(c.gone, name)
	})
	if !ok {
		return 0
	}
	c.Put(id, name)
	return id
}

func (c *cupboard) check(there, gone []string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(there, append([]string(nil), c.All()...)); diff != "" {
		c.t.Errorf("there (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gone, c.gone); diff != "" {
		c.t.Errorf("gone (-want +got):\n%s", diff)
	}
}

// SPEC 15.5: what is in use stays; of what is at rest the first goes.
func TestBoundInNumber(t *testing.T) {
	c := &cupboard{t: t, maxItems: 3, maxBytes: 1000}
	a, b, d := c.put("a", 1), c.put("b", 1), c.put("d", 1)
	if c.put("e", 1) != 0 {
		t.Error("a fourth while three are in use")
	}
	c.check([]string{"a", "b", "d"}, nil)
	c.Rest(d, 1, -1)
	c.Rest(a, 1, -1)
	c.Touch(d) // changes nothing: it is the one that ended first
	if c.put("e", 1) != 4 {
		t.Error("no room")
	}
	c.check([]string{"a", "b", "e"}, []string{"d"})
	if _, ok := c.Get(d); ok {
		t.Error("d can be had")
	}
	if c.put("f", 1) != 5 || c.put("g", 1) != 0 {
		t.Error("b or e has gone")
	}
	c.check([]string{"b", "e", "f"}, []string{"d", "a"})
	if name, ok := c.Get(b); name != "b" || !ok {
		t.Errorf("%q, %v", name, ok)
	}
	c.Clear()
	c.check([]string{"b", "e", "f"}, []string{"d", "a"})
	c.Rest(b, 1, time.Hour)
	c.Clear()
	c.check([]string{"e", "f"}, []string{"d", "a", "b"})
}

// SPEC 15.5: bytes are bounded; what is at rest counts with what it takes, and what is refused costs
// nothing.
func TestBoundInBytes(t *testing.T) {
	c := &cupboard{t: t, maxItems: 100, maxBytes: 10}
	a, b := c.put("a", 5), c.put("b", 5)
	if c.put("d", 1) != 0 {
		t.Error("more than the bound")
	}
	c.Rest(a, 2, -1)
	if c.put("d", 6) != 0 {
		t.Error("more than could be had without a")
	}
	c.check([]string{"a", "b"}, nil)
	if c.put("d", 3) != 3 {
		t.Error("what a does not need is not there")
	}
	c.check([]string{"a", "b", "d"}, nil)
	c.Rest(b, 5, -1)
	c.Rest(b, 0, -1) // no second time
	if c.put("e", 8) != 0 {
		t.Error("more than could be had without a and b")
	}
	c.check([]string{"a", "b", "d"}, nil)
	if c.put("e", 7) != 4 {
		t.Error("no room")
	}
	c.check([]string{"d", "e"}, []string{"a", "b"})
}

// Room that was reserved and is not used is free again, and the thing was never there.
func TestCancel(t *testing.T) {
	c := &cupboard{t: t, maxItems: 1, maxBytes: 10}
	id, ok := c.Reserve(10, 1, 10, func(string) { t.Error("gone") })
	if _, there := c.Get(id); !ok || there {
		t.Error("there before it was put")
	}
	c.check(nil, nil)
	c.Cancel(id)
	c.Cancel(id)
	if c.put("a", 10) != 2 {
		t.Error("no room")
	}
}

// SPEC 15.5: a thing at rest goes when nobody has touched it for its life, and not before.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cupboard{t: t, maxItems: 10, maxBytes: 10}
		a, b, d := c.put("a", 1), c.put("b", 1), c.put("d", 1)
		c.put("e", 1)
		c.Rest(a, 1, time.Minute)
		c.Rest(b, 1, time.Minute)
		c.Rest(d, 1, 0)
		time.Sleep(time.Minute - 1)
		c.Touch(b)
		c.Touch(99)
		c.check([]string{"a", "b", "d", "e"}, nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.check([]string{"b", "d", "e"}, []string{"a"})
		time.Sleep(time.Minute - 2)
		synctest.Wait()
		c.check([]string{"b", "d", "e"}, []string{"a"})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.check([]string{"d", "e"}, []string{"a", "b"})
		time.Sleep(1000 * time.Hour)
		c.Touch(d)
		c.check([]string{"d", "e"}, []string{"a", "b"})
	})
}

// A touch at the moment when the life ends is in time, or the thing has gone: never both.
func TestTouchAtTheEndOfALife(t *testing.T) {
	for range 1000 {
		synctest.Test(t, func(t *testing.T) {
			c := &cupboard{t: t, maxItems: 10, maxBytes: 10}
			id := c.put("a", 1)
			c.Rest(id, 1, time.Minute)
			time.Sleep(time.Minute)
			c.Touch(id)
			_, there := c.Get(id)
			time.Sleep(time.Minute - 1)
			synctest.Wait()
			if there {
				c.check([]string{"a"}, nil)
			} else {
				c.check(nil, []string{"a"})
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			c.check(nil, []string{"a"})
		})
	}
}
