// Package shelf keeps a bounded number of values, each of which is first in use and later at rest. A value in use is
// never removed. To make room for a new value, the values that came to rest first are removed.
package shelf

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Shelf keeps values of type T. The zero Shelf is empty and ready to use. It is safe for concurrent use.
type Shelf[T any] struct {
	mu    sync.Mutex
	items map[int]*item[T] // by id
	next  int              // the last id that was used
	bytes int64            // the sum of the bytes of all items
	rests int              // number of calls of Rest that had an effect
}

// An item is a value of a Shelf, or a place reserved for one.
type item[T any] struct {
	id       int
	value    T
	hasValue bool // value is set
	bytes    int64
	rest     int           // the value of Shelf.rests when the item came to rest; 0 while it is in use
	life     time.Duration // see Rest
	touched  time.Time     // of the last Touch, or of Rest
	timer    *time.Timer   // nil while the item is in use, and if its life has no end
	onRemove func(T)
}

// Reserve reserves a place for a new value of the given size, and returns the id of the place, which is never used
// again. If necessary, it removes values at rest. If removing all of them would not be enough, it removes none and ok
// is false. gone is called, without the lock, when Reserve, Clear or the end of its life removes the new value.
func (s *Shelf[T]) Reserve(bytes int64, maxItems int, maxBytes int64, gone func(T)) (id int, ok bool) {
	s.mu.Lock()
	var resting []*item[T]
	for _, it := range s.items {
		if it.rest > 0 {
			resting = append(resting, it)
		}
	}
	slices.SortFunc(resting, func(a, b *item[T]) int { return cmp.Compare(a.rest, b.rest) })
	// Nothing is removed before it is clear that there will be enough room.
	n, total, out := len(s.items), s.bytes, 0
	for ; (n >= maxItems || total+bytes > maxBytes) && out < len(resting); out++ {
		n, total = n-1, total-resting[out].bytes
	}
	if ok = n < maxItems && total+bytes <= maxBytes; ok {
		for _, it := range resting[:out] {
			s.remove(it)
		}
		if s.items == nil {
			s.items = map[int]*item[T]{}
		}
		s.next++
		id = s.next
		s.items[id] = &item[T]{id: id, bytes: bytes, onRemove: gone}
		s.bytes += bytes
	}
	s.mu.Unlock()
	if ok {
		for _, it := range resting[:out] {
			it.onRemove(it.value)
		}
	}
	return id, ok
}

// remove removes an item from the shelf, and stops its timer. The caller holds s.mu.
func (s *Shelf[T]) remove(it *item[T]) {
	if it.timer != nil {
		it.timer.Stop()
	}
	delete(s.items, it.id)
	s.bytes -= it.bytes
}

// Cancel releases the place id. It does nothing if there is no such place.
func (s *Shelf[T]) Cancel(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil {
		s.remove(it)
	}
}

// Put stores a value, which is in use, at the reserved place id. It does nothing if there is no such place.
func (s *Shelf[T]) Put(id int, thing T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil {
		it.value, it.hasValue = thing, true
	}
}

// Rest records that the value id is at rest, and that its size is bytes from now on. The value is removed after life
// without a call of Touch; if life is 0 or less, it stays until Reserve or Clear removes it. A second call for the same
// id does nothing, and neither does a call for an id without a place.
func (s *Shelf[T]) Rest(id int, bytes int64, life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[id]
	if it == nil || it.rest > 0 {
		return
	}
	s.bytes += bytes - it.bytes
	s.rests++
	it.bytes, it.rest, it.life, it.touched = bytes, s.rests, life, time.Now()
	if life > 0 {
		it.timer = time.AfterFunc(life, func() { s.expire(it) })
	}
}

// Touch restarts the life of the value id. It does nothing if the value is in use, its life has no end, or there is no
// such value any more.
func (s *Shelf[T]) Touch(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil && it.timer != nil {
		it.touched = time.Now()
		it.timer.Reset(it.life)
	}
}

// expire is the function of the timer of it.
func (s *Shelf[T]) expire(it *item[T]) {
	s.mu.Lock()
	// Touch may have been called after the timer fired. It has then restarted the timer.
	due := s.items[it.id] == it && time.Since(it.touched) >= it.life
	if due {
		s.remove(it)
	}
	s.mu.Unlock()
	if due {
		it.onRemove(it.value)
	}
}

// Get returns the value id. ok is false if there is no such value, or Put has not stored it yet.
func (s *Shelf[T]) Get(id int) (thing T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil && it.hasValue {
		return it.value, true
	}
	return thing, false
}

// All returns all stored values in the order of their ids.
func (s *Shelf[T]) All() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*item[T]
	for _, it := range s.items {
		if it.hasValue {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b *item[T]) int { return cmp.Compare(a.id, b.id) })
	things := make([]T, len(all))
	for i, it := range all {
		things[i] = it.value
	}
	return things
}

// Clear removes all values at rest.
func (s *Shelf[T]) Clear() {
	s.mu.Lock()
	var out []*item[T]
	for _, it := range s.items {
		if it.rest > 0 {
			out = append(out, it)
			s.remove(it)
		}
	}
	s.mu.Unlock()
	for _, it := range out {
		it.onRemove(it.value)
	}
}
