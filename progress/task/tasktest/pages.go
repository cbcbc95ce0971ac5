package tasktest

import (
	"fmt"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

func listAll(t *testing.T, s task.Store, owner string, limit int, between func()) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := s.List(t.Context(), owner, cursor, limit)
		if err != nil || len(page) > limit || pages > 1000 {
			t.Fatalf("page %d has %d tasks, %v", pages, len(page), err)
		}
		for _, r := range page {
			seen[r.ID]++
			if r.Owner != owner || r.Status == "" || r.Created.IsZero() {
				t.Errorf("%+v", r)
			}
		}
		if cursor = next; next == "" {
			return seen
		}
		between()
	}
}

func testList(t *testing.T, s task.Store) {
	if page, next, err := s.List(t.Context(), "ann", "", 10); err != nil || len(page) != 0 || next != "" {
		t.Errorf("none: %v %q %v", page, next, err)
	}
	ids := map[string]bool{}
	for i := range 7 {
		r := mustCreate(t, s, record("ann", fmt.Sprint("t", i)))
		ids[r.ID] = true
		mustCreate(t, s, record("bob", fmt.Sprint("t", i)))
		if i%2 == 0 {
			if _, err := s.Update(t.Context(), ended(r, task.Completed, `{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, limit := range []int{1, 3, 6, 7, 8, 100} {
		seen := listAll(t, s, "ann", limit, func() {})
		if len(seen) != len(ids) {
			t.Errorf("limit %d: %v", limit, seen)
		}
		for id, n := range seen {
			if !ids[id] || n != 1 {
				t.Errorf("limit %d: %s %d times", limit, id, n)
			}
		}
	}
	for _, cursor := range []string{"nonsense", "*", "-1", "1e3", "\x00"} {
		_, _, err := s.List(t.Context(), "ann", cursor, 10)
		wantError(t, fmt.Sprintf("cursor %q", cursor), err, task.ErrCursor)
	}
}

func testListMeanwhile(t *testing.T, s task.Store) {
	var stay []string
	for i := range 9 {
		stay = append(stay, mustCreate(t, s, record("ann", fmt.Sprint("stay", i))).ID)
	}
	n := 0
	seen := listAll(t, s, "ann", 2, func() {
		if n++; n > 20 {
			return
		}
		mustCreate(t, s, record("ann", fmt.Sprint("new", n)))
		_, err := change(t.Context(), s, "ann", stay[n%len(stay)], func(r *task.Record) bool { r.Message = fmt.Sprint(n); return true })
		if err != nil {
			t.Error(err)
		}
	})
	for _, id := range stay {
		if seen[id] != 1 {
			t.Errorf("%s was listed %d times", id, seen[id])
		}
	}
}
