package natstasks

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// List returns a page of the tasks of an owner, in the order of their ids; see [task.Store].
// Answers in the object store are left out.
//
// The server can only return all keys of an owner at once. The first page reads them, and this replica keeps them for a
// minute for the pages that follow.
func (s *store) List(ctx context.Context, owner, cursor string, limit int) (page []task.Record, next string, err error) {
	var after string
	if cursor != "" {
		var ok bool
		if after, ok = idOf(cursor); !ok {
			return nil, "", task.ErrCursor
		}
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	ids, err := s.ids(ctx, owner, cursor == "")
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return nil, "", fmt.Errorf("natstasks: %w", err)
	}
	begin, found := slices.BinarySearch(ids, after)
	if found {
		begin++
	}
	ids = ids[begin:]
	gone := s.judge()
	for limit = max(limit, 1); len(page) < limit && len(ids) > 0; {
		some := ids[:min(limit-len(page), len(ids))]
		records, err := s.readAll(ctx, owner, some, gone)
		if err != nil {
			return nil, "", err
		}
		page, ids = append(page, records...), ids[len(some):]
		next = cursorOf(some[len(some)-1])
	}
	if len(ids) == 0 {
		next = ""
	}
	return page, next, nil
}

// listTime is how long the ids of an owner are kept for the pages after the first. maxListed bounds the number of ids
// of all owners that are kept.
const (
	listTime  = time.Minute
	maxListed = 200_000
)

// A listing has the ids of an owner's tasks, sorted.
type listing struct {
	ids   []string
	until time.Time
}

// ids returns the ids of an owner's tasks, sorted. For a page after the first, it returns the ids that were read for
// the first page, if they are still kept.
func (s *store) ids(ctx context.Context, owner string, first bool) ([]string, error) {
	prefix := s.subject(hash(owner)) + "."
	s.mu.Lock()
	known := s.listings[prefix]
	s.mu.Unlock()
	if !first && time.Now().Before(known.until) {
		return known.ids, nil
	}
	subjects, err := s.subjects(ctx, "KV_"+s.opts.Bucket, prefix+">")
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(subjects))
	for subject := range subjects {
		if id := subject[len(prefix):]; taskID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listings[prefix] = listing{ids, time.Now().Add(listTime)}
	total := 0
	for of, l := range s.listings {
		if total += len(l.ids); of != prefix && (!time.Now().Before(l.until) || total > maxListed) {
			total -= len(l.ids)
			delete(s.listings, of)
		}
	}
	return ids, nil
}

// judge returns a function that calls isGone once for each replica, and then returns the same result again.
func (s *store) judge() func(ctx context.Context, replica string) bool {
	var mu sync.Mutex
	judged := make(map[string]bool)
	return func(ctx context.Context, replica string) bool {
		mu.Lock()
		defer mu.Unlock()
		is, ok := judged[replica]
		if !ok {
			is = s.isGone(ctx, replica)
			judged[replica] = is
		}
		return is
	}
}

// reading is the number of records that readAll reads at the same time.
const reading = 16

// readAll returns the records of an owner with these ids, and leaves out the unknown ones. It applies get to each, so
// tasks of replicas for which gone returns true are marked as failed.
func (s *store) readAll(ctx context.Context, owner string, ids []string, gone func(ctx context.Context, replica string) bool) ([]task.Record, error) {
	records, errs := make([]stored, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for first := range min(reading, len(ids)) {
		all.Go(func() {
			for i := first; i < len(ids); i += reading {
				k, _ := keyOf(owner, ids[i])
				if records[i], errs[i] = s.get(ctx, k, gone); errs[i] != nil && !unknown(errs[i]) {
					return
				}
			}
		})
	}
	all.Wait()
	var known []task.Record
	for i, err := range errs {
		switch {
		case err == nil:
			known = append(known, records[i].Record)
		case !unknown(err):
			return nil, err
		}
	}
	return known, nil
}
