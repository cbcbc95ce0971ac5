package task

import (
	"cmp"
	"context"
	"slices"
	"strconv"
)

const (
	defaultMaxTasks = 1000
	defaultMaxBytes = 64 << 20
)

// NewMemory returns a [Store] in the memory of the process, bounded in number and bytes. Tasks end with the process.
//
// maxTasks is the largest number of tasks that the store keeps, running and finished; 0 or less means 1000. maxBytes is
// the largest size of all tasks in bytes: their results, messages, questions and other texts, and 1 KiB each; 0 or less
// means 64 MiB.
//
// When a bound is reached, the store removes finished tasks early, one by one: the first to expire among those of the
// owner whose finished tasks take the largest part of a bound. So a client with many or large tasks loses its own
// results first. If that does not make enough room, Create returns [ErrFull], and Update with a larger record returns
// [ErrTooLarge], as does Create with a record that is larger than maxBytes.
func NewMemory(maxTasks int, maxBytes int64) Store {
	return &memory{
		maxTasks: cmp.Or(max(maxTasks, 0), defaultMaxTasks), maxBytes: cmp.Or(max(maxBytes, 0), defaultMaxBytes),
		tasks: make(map[memoryKey]*memoryTask), final: finalHeap(0), owners: make(map[string]*memoryOwner),
		largest: memoryHeap[*memoryOwner]{
			before: func(a, b *memoryOwner) bool { return a.part > b.part },
			place:  func(o *memoryOwner) *int { return &o.place },
		},
	}
}

// Create stores a new record; see [Store]. It returns ErrTooLarge if the record alone exceeds the bound of bytes, and
// ErrFull if the running tasks leave no room for it.
func (m *memory) Create(ctx context.Context, r Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge()
	n := &memoryTask{Record: r, size: sizeOf(&r), changed: make(chan struct{})}
	if n.size > m.maxBytes {
		return Record{}, ErrTooLarge
	}
	key := memoryKey{r.Owner, r.ID}
	if m.tasks[key] != nil {
		return Record{}, ErrConflict
	}
	if len(m.tasks)-m.final.Len() >= m.maxTasks || m.running+n.size > m.maxBytes {
		return Record{}, ErrFull
	}
	for len(m.tasks) >= m.maxTasks || m.bytes+n.size > m.maxBytes {
		m.evict()
	}
	m.tasks[key] = n
	m.bytes += n.size
	m.running += n.size
	m.created++
	n.number = m.created
	m.stamp(n)
	m.addFinal(n)
	return n.Record, nil
}

// Get returns the record of the owner's task with this id, or ErrUnknown.
func (m *memory) Get(ctx context.Context, owner, id string) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge()
	if n := m.tasks[memoryKey{owner, id}]; n != nil {
		return n.Record, nil
	}
	return Record{}, ErrUnknown
}

// Update replaces the stored record if its revision is that of r; see [Store]. It returns
// ErrTooLarge if the record would not fit even if all finished tasks were removed.
func (m *memory) Update(ctx context.Context, r Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge()
	n := m.tasks[memoryKey{r.Owner, r.ID}]
	switch {
	case n == nil:
		return Record{}, ErrUnknown
	case n.Revision != r.Revision:
		return Record{}, ErrConflict
	}
	size, others := sizeOf(&r), m.running
	if !n.Status.Final() {
		others -= n.size
	}
	if others+size > m.maxBytes {
		return Record{}, ErrTooLarge
	}
	// n itself, which may be final too, must not be evicted.
	m.removeFinal(n)
	for m.bytes-n.size+size > m.maxBytes {
		m.evict()
	}
	m.bytes += size - n.size
	m.running += size - n.size
	n.Record, n.size = r, size
	m.stamp(n)
	close(n.changed)
	n.changed = make(chan struct{})
	m.addFinal(n)
	return n.Record, nil
}

// List returns a page of the owner's tasks, in the order in which they were created; see [Store].
func (m *memory) List(ctx context.Context, owner, cursor string, limit int) (page []Record, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", context.Cause(ctx)
	}
	var after uint64
	if cursor != "" {
		if after, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", ErrCursor
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge()
	var all []*memoryTask
	for key, n := range m.tasks {
		if key.owner == owner && n.number > after {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *memoryTask) int { return cmp.Compare(a.number, b.number) })
	if limit = max(limit, 1); len(all) > limit {
		all = all[:limit]
		next = strconv.FormatUint(all[limit-1].number, 10)
	}
	for _, n := range all {
		page = append(page, n.Record)
	}
	return page, next, nil
}

// Wait returns the record as soon as its revision differs from after, or ErrUnknown if there is no
// such record or it expires meanwhile. If ctx ends first, the error is the cause of ctx.
func (m *memory) Wait(ctx context.Context, owner, id string, after uint64) (Record, error) {
	for {
		m.mu.Lock()
		m.purge()
		n := m.tasks[memoryKey{owner, id}]
		if n == nil {
			m.mu.Unlock()
			return Record{}, ErrUnknown
		}
		r, changed := n.Record, n.changed
		m.mu.Unlock()
		if r.Revision != after {
			return r, nil
		}
		if ctx.Err() != nil {
			return Record{}, context.Cause(ctx)
		}
		select { // a change wins over the end of ctx, because the record is looked at first
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (m *memory) stamp(n *memoryTask) {
	m.revision++
	n.Revision = m.revision
}
