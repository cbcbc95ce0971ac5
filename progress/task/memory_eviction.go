package task

import (
	"container/heap"
	"encoding/json"
	"time"
)

// addFinal adds a task to the heaps of final tasks, if it is final, and sets the timer.
func (m *memory) addFinal(n *memoryTask) {
	if n.Status.Final() {
		m.running -= n.size
		heap.Push(&m.final, n)
		o := m.owners[n.Owner]
		if o == nil {
			if m.owners == nil {
				m.owners = make(map[string]*memoryOwner)
			}
			o = &memoryOwner{name: n.Owner, final: memoryHeap{heapIndex: ofOwner}, index: -1}
			m.owners[n.Owner] = o
		}
		heap.Push(&o.final, n)
		o.bytes += n.size
		m.weigh(o)
	}
	m.arm()
}

// removeFinal removes a task from the heaps of final tasks, if it is in them.
func (m *memory) removeFinal(n *memoryTask) {
	if n.index[ofAll] < 0 {
		return
	}
	heap.Remove(&m.final, n.index[ofAll])
	m.running += n.size
	o := m.owners[n.Owner]
	heap.Remove(&o.final, n.index[ofOwner])
	o.bytes -= n.size
	m.weigh(o)
}

// weigh computes the share of an owner, and restores the order of the heap of owners. It removes an owner that has no
// final tasks.
func (m *memory) weigh(o *memoryOwner) {
	o.share = max(float64(o.final.Len())/float64(m.maxTasks), float64(o.bytes)/float64(m.maxBytes))
	switch {
	case o.final.Len() == 0:
		heap.Remove(&m.shares, o.index)
		delete(m.owners, o.name)
	case o.index < 0:
		heap.Push(&m.shares, o)
	default:
		heap.Fix(&m.shares, o.index)
	}
}

// evict removes the final task that expires first of the owner with the largest share. There must be a final task.
func (m *memory) evict() { m.remove(m.shares[0].final.tasks[0]) }

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
	for m.final.Len() > 0 && !time.Now().Before(m.final.tasks[0].Expires) {
		m.remove(m.final.tasks[0])
	}
}

// arm sets the timer to the time at which the next task expires.
func (m *memory) arm() {
	if m.final.Len() == 0 {
		return
	}
	d := time.Until(m.final.tasks[0].Expires)
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
	final memoryHeap
	bytes int64
	share float64 // the part of maxTasks or of maxBytes that the tasks take, whichever is larger
	index int     // the place in the heap of owners, or -1
}

// The indices in memoryTask.index.
const (
	ofAll = iota
	ofOwner
)

// A memoryHeap has the task that expires first on top.
type memoryHeap struct {
	tasks     []*memoryTask
	heapIndex int
}

func (h *memoryHeap) Len() int           { return len(h.tasks) }
func (h *memoryHeap) Less(i, j int) bool { return h.tasks[i].Expires.Before(h.tasks[j].Expires) }
func (h *memoryHeap) Swap(i, j int) {
	h.tasks[i], h.tasks[j] = h.tasks[j], h.tasks[i]
	h.tasks[i].index[h.heapIndex], h.tasks[j].index[h.heapIndex] = i, j
}
func (h *memoryHeap) Push(x any) {
	n := x.(*memoryTask)
	n.index[h.heapIndex] = len(h.tasks)
	h.tasks = append(h.tasks, n)
}
func (h *memoryHeap) Pop() any {
	n := h.tasks[len(h.tasks)-1]
	h.tasks[len(h.tasks)-1] = nil
	h.tasks = h.tasks[:len(h.tasks)-1]
	n.index[h.heapIndex] = -1
	return n
}

// An ownerHeap has the owner with the largest share on top.
type ownerHeap []*memoryOwner

func (h ownerHeap) Len() int           { return len(h) }
func (h ownerHeap) Less(i, j int) bool { return h[i].share > h[j].share }
func (h ownerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *ownerHeap) Push(x any) {
	o := x.(*memoryOwner)
	o.index = len(*h)
	*h = append(*h, o)
}
func (h *ownerHeap) Pop() any {
	old := *h
	o := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	o.index = -1
	return o
}
