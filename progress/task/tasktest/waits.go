package tasktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

type waited struct {
	task.Record
	err error
}

func waiting(ctx context.Context, s task.Store, owner, id string, after uint64) <-chan waited {
	c := make(chan waited, 1)
	go func() {
		r, err := s.Wait(ctx, owner, id, after)
		c <- waited{r, err}
	}()
	return c
}

func receive(t *testing.T, c <-chan waited) waited {
	t.Helper()
	select {
	case w := <-c:
		return w
	case <-time.After(slack):
		t.Fatal("Wait does not return")
		return waited{}
	}
}

func testWait(t *testing.T, s task.Store) {
	first := mustCreate(t, s, record("ann", "one"))
	if w := receive(t, waiting(t.Context(), s, "ann", first.ID, first.Revision+1)); w.err != nil || w.Revision != first.Revision {
		t.Errorf("another revision: %+v", w)
	}
	var waits []<-chan waited
	for range 3 {
		waits = append(waits, waiting(t.Context(), s, "ann", first.ID, first.Revision))
	}
	other := mustCreate(t, s, record("ann", "two"))
	if _, err := s.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	select {
	case w := <-waits[0]:
		t.Errorf("it has returned without a change: %+v", w)
	case <-time.After(100 * time.Millisecond):
	}
	second := first
	second.Message = "second"
	second, err := s.Update(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range waits {
		w := receive(t, c)
		if w.err != nil || w.Revision != second.Revision {
			t.Errorf("%+v", w)
		}
		same(t, w.Record, second)
	}
	last := waiting(t.Context(), s, "ann", first.ID, second.Revision)
	if _, err := s.Update(t.Context(), ended(second, task.Completed, `{"content":[]}`)); err != nil {
		t.Fatal(err)
	}
	if w := receive(t, last); w.err != nil || w.Status != task.Completed || w.Answer == nil || string(w.Answer.Result) != `{"content":[]}` {
		t.Errorf("%+v", w)
	}
}

func testWaitContext(t *testing.T, s task.Store) {
	r := mustCreate(t, s, record("ann", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	w := waiting(ctx, s, "ann", r.ID, r.Revision)
	cancel()
	if w := receive(t, w); w.err == nil || errors.Is(w.err, task.ErrUnknown) {
		t.Errorf("%+v", w)
	}
}

func testContext(t *testing.T, s task.Store) {
	r := mustCreate(t, s, record("ann", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, create := s.Create(ctx, record("ann", "two"))
	_, get := s.Get(ctx, "ann", r.ID)
	_, update := s.Update(ctx, r)
	_, _, list := s.List(ctx, "ann", "", 10)
	for name, err := range map[string]error{"Create": create, "Get": get, "Update": update, "List": list} {
		if err == nil || errors.Is(err, task.ErrUnknown) || errors.Is(err, task.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testExpiry(t *testing.T, s task.Store) {
	short := record("ann", "short")
	short.Retention = time.Second
	short = mustCreate(t, s, short)
	long := mustCreate(t, s, record("ann", "long"))
	runs := record("ann", "runs")
	runs.Retention = time.Second // has no effect on a task that has not ended
	runs = mustCreate(t, s, runs)

	short, err := s.Update(t.Context(), ended(short, task.Completed, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), ended(long, task.Completed, `{}`)); err != nil {
		t.Fatal(err)
	}
	w := waiting(t.Context(), s, "ann", short.ID, short.Revision)
	if _, err := s.Get(t.Context(), "ann", short.ID); err != nil && time.Now().Before(short.Expires) {
		t.Errorf("before it expires: %v", err)
	}
	time.Sleep(time.Until(short.Expires))
	_, err = s.Get(t.Context(), "ann", short.ID)
	wantError(t, "Get when it has expired", err, task.ErrUnknown)
	if seen := listAll(t, s, "ann", 10, func() {}); len(seen) != 2 {
		t.Errorf("listed: %v", seen)
	}
	_, err = s.Update(t.Context(), short)
	wantError(t, "Update when it has expired", err, task.ErrUnknown)
	wantError(t, "Wait when it expires", receive(t, w).err, task.ErrUnknown)
	for _, id := range []string{long.ID, runs.ID} {
		if _, err := s.Get(t.Context(), "ann", id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
