package task

import (
	"encoding/json"
	"slices"
	"time"
)

// A memoryShare is what the final tasks of one owner take.
type memoryShare struct {
	tasks int
	bytes int64
}

// addFinal adds a task to the final tasks, if it is final, and sets the timer.
func (m *memory) addFinal(n *memoryTask) {
	if n.Status.Final() {
		m.running -= n.size
		at, _ := slices.BinarySearchFunc(m.final, n, func(a, b *memoryTask) int { return a.Expires.Compare(b.Expires) })
		m.final = slices.Insert(m.final, at, n)
		s := m.owners[n.Owner]
		m.owners[n.Owner] = memoryShare{s.tasks + 1, s.bytes + n.size}
	}
	m.arm()
}

// removeFinal removes a task from the final tasks, if it is one of them.
func (m *memory) removeFinal(n *memoryTask) {
	if !n.Status.Final() {
		return
	}
	m.running += n.size
	at := slices.Index(m.final, n)
	m.final = slices.Delete(m.final, at, at+1)
	s := m.owners[n.Owner]
	if m.owners[n.Owner] = (memoryShare{s.tasks - 1, s.bytes - n.size}); s.tasks == 1 {
		delete(m.owners, n.Owner)
	}
}

// evict removes the final task that expires first of the owner whose final tasks take the largest part of a bound.
// There must be a final task.
func (m *memory) evict() {
	owner, largest := "", -1.0
	for name, s := range m.owners {
		part := max(float64(s.tasks)/float64(m.maxTasks), float64(s.bytes)/float64(m.maxBytes))
		if part > largest {
			owner, largest = name, part
		}
	}
	m.remove(m.final[slices.IndexFunc(m.final, func(n *memoryTask) bool { return n.Owner == owner })])
}

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
	for len(m.final) > 0 && !time.Now().Before(m.final[0].Expires) {
		m.remove(m.final[0])
	}
}

// arm sets the timer to the time at which the next task expires.
func (m *memory) arm() {
	if len(m.final) == 0 {
		return
	}
	d := time.Until(m.final[0].Expires)
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
