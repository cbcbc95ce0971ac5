package natstasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// List returns a page of the tasks of an owner, in the order of their ids; see [task.Store].
// Answers in the object store are left out.
func (s *Store) List(ctx context.Context, owner, cursor string, limit int) (page []task.Record, next string, err error) {
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
	prefix := s.subject(hash(owner)) + "."
	subjects, err := s.subjects(ctx, "KV_"+s.opts.Bucket, prefix+">")
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return nil, "", fmt.Errorf("natstasks: %w", err)
	}
	var ids []string
	for subject := range subjects {
		if id := subject[len(prefix):]; id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	judged := make(map[string]bool)
	gone := func(ctx context.Context, replica string) bool {
		is, ok := judged[replica]
		if !ok {
			is = s.gone(ctx, replica)
			judged[replica] = is
		}
		return is
	}
	limit = max(limit, 1)
	for i, id := range ids {
		k, ok := keyOf(owner, id)
		if !ok {
			continue
		}
		r, err := s.get(ctx, k, gone)
		if unknown(err) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if page = append(page, r.Record); len(page) == limit && i < len(ids)-1 {
			return page, cursorOf(id), nil
		}
	}
	return page, "", nil
}
