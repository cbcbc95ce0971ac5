package task

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"time"
)

// addFinal adds a task to the final tasks, if it is final, and sets the timer.
func (m *memory) addFinal(n *memoryTask) {
	if n.Status.Final() {
		m.running -= n.size
		heap.Push(&m.final, n)
		o := m.owners[n.Owner]
		if o == nil {
			o = &memoryOwner{name: n.Owner, final: finalHeap(1)}
			m.owners[n.Owner] = o
			heap.Push(&m.largest, o)
		}
		heap.Push(&o.final, n)
		o.bytes += n.size
		m.weigh(o)
	}
	m.arm()
}

// removeFinal removes a task from the final tasks, if it is one of them.
func (m *memory) removeFinal(n *memoryTask) {
	if !n.Status.Final() {
		return
	}
	m.running += n.size
	heap.Remove(&m.final, n.place[0])
	o := m.owners[n.Owner]
	heap.Remove(&o.final, n.place[1])
	o.bytes -= n.size
	m.weigh(o)
}

// weigh computes the part of a bound that the final tasks of an owner take, and removes an owner without final tasks.
func (m *memory) weigh(o *memoryOwner) {
	o.part = max(float64(o.final.Len())/float64(m.maxTasks), float64(o.bytes)/float64(m.maxBytes))
	if heap.Fix(&m.largest, o.place); o.final.Len() == 0 {
		heap.Remove(&m.largest, o.place)
		delete(m.owners, o.name)
	}
}

// evict removes the final task that expires first of the owner whose final tasks take the largest part of a bound.
// There must be a final task.
func (m *memory) evict() { m.remove(m.largest.all[0].final.all[0]) }

// remove removes a task that is final.
func (m *memory) remove(n *memoryTask) {
	m.removeFinal(n)
	m.running -= n.size
	delete(m.tasks, memoryKey{n.Owner, n.ID})
	m.bytes -= n.size
	close(n.changed)
}

// purge removes the tasks that have expired. Every method calls it first, because the timer may be late. The caller
// holds mu.
func (m *memory) purge() {
	for m.final.Len() > 0 && !time.Now().Before(m.final.all[0].Expires) {
		m.remove(m.final.all[0])
	}
}

// arm sets the timer to the time at which the next task expires.
func (m *memory) arm() {
	if m.final.Len() == 0 {
		return
	}
	d := time.Until(m.final.all[0].Expires)
	if m.timer == nil {
		m.timer = time.AfterFunc(d, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.purge()
			m.arm()
		})
		return
	}
	m.timer.Reset(d)
}

func sizeOf(r *Record) int64 {
	n := recordSize + len(r.ID) + len(r.Owner) + len(r.Tool) + len(r.Message) + len(r.Failure)
	for _, all := range []map[string]json.RawMessage{r.Questions, r.Answers} {
		for key, text := range all {
			n += len(key) + len(text)
		}
	}
	if r.Answer != nil {
		n += sizeOfAnswer(r.Answer)
	}
	return int64(n)
}

func sizeOfAnswer(a *Answer) int {
	n := len(a.Result)
	if a.Error != nil {
		n += len(a.Error.Message) + len(a.Error.Data)
	}
	return n
}

// A memoryOwner holds the final tasks of one owner.
type memoryOwner struct {
	name  string
	final memoryHeap[*memoryTask]
	bytes int64
	part  float64 // of maxTasks or of maxBytes, whichever is larger
	place int     // in memory.largest
}

// A memoryHeap has the element on top that is before all others. A linear search under the lock would take more than a
// millisecond for each of 60 000 owners, and one large result may evict the tasks of all of them.
type memoryHeap[T any] struct {
	all    []T
	before func(a, b T) bool
	place  func(T) *int // returns the variable in which an element records its index in all
}

// finalHeap returns a heap with the task on top that expires first, of those that expire together the oldest.
func finalHeap(place int) memoryHeap[*memoryTask] {
	return memoryHeap[*memoryTask]{
		before: func(a, b *memoryTask) bool {
			return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.number, b.number)) < 0
		},
		place: func(n *memoryTask) *int { return &n.place[place] },
	}
}

func (h *memoryHeap[T]) Len() int           { return len(h.all) }
func (h *memoryHeap[T]) Less(i, j int) bool { return h.before(h.all[i], h.all[j]) }
func (h *memoryHeap[T]) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	*h.place(h.all[i]), *h.place(h.all[j]) = i, j
}

func (h *memoryHeap[T]) Push(x any) {
	n := x.(T)
	*h.place(n) = len(h.all)
	h.all = append(h.all, n)
}

func (h *memoryHeap[T]) Pop() any {
	last := len(h.all) - 1
	n := h.all[last]
	clear(h.all[last:]) // so that a removed task is not kept
	h.all = h.all[:last]
	return n
}
