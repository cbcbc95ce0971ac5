package task

import (
	"cmp"
	"sync"
	"time"
)

type memory struct {
	maxTasks int
	maxBytes int64

	mu       sync.Mutex
	tasks    map[memoryKey]*memoryTask
	final    memoryHeap[*memoryTask]  // final tasks, the first to expire on top
	owners   map[string]*memoryOwner  // of final tasks
	largest  memoryHeap[*memoryOwner] // these owners, the one whose tasks take the largest part of a bound on top
	bytes    int64                    // the size of all tasks
	running  int64                    // the size of the tasks that are not final
	created  uint64                   // number of tasks created so far
	revision uint64
	timer    *time.Timer // fires when the first task expires
}

type memoryKey struct{ owner, id string }

type memoryTask struct {
	Record
	size    int64
	number  uint64        // the first task has 1
	place   [2]int        // of a final task in the heaps of the store and of its owner
	changed chan struct{} // closed by the next change or removal
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

func (h *memoryHeap[T]) Len() int { return len(h.all) }

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
