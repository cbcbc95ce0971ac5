// Package shelf keeps a bounded number of things that are first in use and then at rest. A thing that
// is in use stays; of those at rest, the one that has rested for longest makes room for the next.
package shelf

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Shelf keeps things of type T. The zero Shelf is empty and ready to use.
type Shelf[T any] struct {
	mu    sync.Mutex
	items map[int]*item[T]
	next  int
	bytes int64
	rests int // number of things that have come to rest so far
}

type item[T any] struct {
	id       int
	value    T
	hasValue bool // value is set
	bytes    int64
	rest     int // its place in the order of coming to rest, from 1; 0 while it is in use
	life     time.Duration
	touched  time.Time
	timer    *time.Timer
	onRemove func(T)
}

// Reserve makes room for one more thing of so many bytes, if that is possible within the bounds, and
// returns its number. It calls gone for each thing that had to go, after that.
func (s *Shelf[T]) Reserve(bytes int64, maxItems int, maxBytes int64, gone func(T)) (id int, ok bool) {
	s.mu.Lock()
	var resting []*item[T]
	for _, it := range s.items {
		if it.rest > 0 {
			resting = append(resting, it)
		}
	}
	slices.SortFunc(resting, func(a, b *item[T]) int { return cmp.Compare(a.rest, b.rest) })
	// First see whether it is enough: a refusal must not cost anything.
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

// remove removes an item from the shelf.
func (s *Shelf[T]) remove(it *item[T]) {
	if it.timer != nil {
		it.timer.Stop()
	}
	delete(s.items, it.id)
	s.bytes -= it.bytes
}

// Cancel gives back the room that was reserved under id.
func (s *Shelf[T]) Cancel(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil {
		s.remove(it)
	}
}

// Put puts a thing, which is in use, where room was made for it.
func (s *Shelf[T]) Put(id int, thing T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil {
		it.value, it.hasValue = thing, true
	}
}

// Rest says that a thing is no longer in use, and that it takes the given number of bytes from now on. It is
// removed when it has not been touched for life; a life of 0 or less has no end.
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

// Touch starts the life of a thing that is at rest again.
func (s *Shelf[T]) Touch(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil && it.timer != nil {
		it.touched = time.Now()
		it.timer.Reset(it.life)
	}
}

func (s *Shelf[T]) expire(it *item[T]) {
	s.mu.Lock()
	// A touch may have come after the timer fired; it has set the timer again.
	due := s.items[it.id] == it && time.Since(it.touched) >= it.life
	if due {
		s.remove(it)
	}
	s.mu.Unlock()
	if due {
		it.onRemove(it.value)
	}
}

// Get returns the thing with the number id, and reports whether there is one.
func (s *Shelf[T]) Get(id int) (thing T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items[id]; it != nil && it.hasValue {
		return it.value, true
	}
	return thing, false
}

// All returns all things in the order of their numbers.
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

// Clear removes all things that are at rest.
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
