package task

import (
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

// recordSize is the size of a record in bytes without its texts.
const recordSize = 1 << 10

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
