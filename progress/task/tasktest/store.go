// Package tasktest tests implementations of [task.Store]:
//
//	func TestStore(t *testing.T) {
//		tasktest.TestStore(t, func(t *testing.T) (a, b task.Store) { return open(t) })
//	}
//
// The tests take a second or two of real time, because a store may use the clock of a server.
package tasktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// slack bounds how long a test waits for something that a store does as soon as it can. Only a test that fails waits so
// long.
const slack = 20 * time.Second

// TestStore runs the tests that every store must pass, in parallel. It calls open for each test, and may do so
// concurrently. open returns two replicas of one empty store, which may be the same Store, with room for 200 tasks and 2
// MiB of results, and closes them in t.Cleanup if necessary. Each test runs twice: with one replica, and with records
// that one replica changes and the other reads.
func TestStore(t *testing.T, open func(t *testing.T) (a, b task.Store)) {
	for _, tc := range []struct {
		name string
		test func(*testing.T, task.Store)
	}{
		{"what was created is found", testCreate},
		{"by its owner alone", testOwners},
		{"an update needs the newest revision", testUpdate},
		{"every update counts", testConcurrentUpdates},
		{"of two ends there is one", testRacingEnds},
		{"a cancelled task gets its result", testCancelled},
		{"a large result", testLarge},
		{"what was returned does not change", testAliases},
		{"pages", testList},
		{"pages while tasks come and go", testListMeanwhile},
		{"a wait", testWait},
		{"waits end with the context", testWaitContext},
		{"no method outlives its context", testContext},
		{"what has expired is unknown", testExpiry},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			tc.test(t, s)
		})
		t.Run(tc.name+", through another replica", func(t *testing.T) {
			t.Parallel()
			a, b := open(t)
			tc.test(t, &across{Store: a, reads: b})
		})
	}
}

// across changes records through its Store, and reads them through another replica.
type across struct {
	task.Store
	reads task.Store
}

func (a *across) Get(ctx context.Context, owner, id string) (task.Record, error) {
	return a.reads.Get(ctx, owner, id)
}

func (a *across) List(ctx context.Context, owner, cursor string, limit int) ([]task.Record, string, error) {
	return a.reads.List(ctx, owner, cursor, limit)
}

func (a *across) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	return a.reads.Wait(ctx, owner, id, after)
}

// record returns the record of a task that has just begun.
func record(owner, id string) task.Record {
	now := time.Now().Round(0).UTC()
	return task.Record{
		ID: id, Owner: owner, Form: task.Extension, Tool: "build", Version: "2026-07-28",
		Status: task.Working, Message: "main.go", Progress: 3, Total: 10,
		Started: now, Created: now, Updated: now, Poll: time.Second, Retention: time.Minute,
	}
}

func ended(r task.Record, status task.Status, result string) task.Record {
	r.Status, r.Expires = status, time.Now().Round(0).UTC().Add(r.Retention)
	r.Answer = &task.Answer{Result: json.RawMessage(result)}
	return r
}

func mustCreate(t *testing.T, s task.Store, r task.Record) task.Record {
	t.Helper()
	stored, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return stored
}

// same fails the test if two records differ in more than their revisions.
func same(t *testing.T, got, want task.Record) {
	t.Helper()
	a, err := json.Marshal(got)
	b, err2 := json.Marshal(want)
	if err != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("got  %.2000s\nwant %.2000s %v %v", a, b, err, err2)
	}
}

func wantError(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want an error that is %q", what, err, target)
	}
}

func testCreate(t *testing.T, s task.Store) {
	r := record("ann", "one")
	r.Questions = map[string]json.RawMessage{"1.ok": json.RawMessage(`{"method":"elicitation/create"}`)}
	r.Answers = map[string]json.RawMessage{"1.name": json.RawMessage(`"Bob"`)}
	r.Status, r.Round, r.Soft, r.WaitTool, r.Abort = task.InputRequired, 1, time.Second, "wait_for_result", true
	stored := mustCreate(t, s, r)
	if !strings.HasSuffix(stored.ID, r.ID) {
		t.Errorf("the id %q was made %q", r.ID, stored.ID)
	}
	r.ID = stored.ID
	same(t, stored, r)
	got, err := s.Get(t.Context(), "ann", stored.ID)
	if err != nil || got.Revision != stored.Revision {
		t.Errorf("Get: revision %d, %v; Create: %d", got.Revision, err, stored.Revision)
	}
	same(t, got, r)
	again := record("ann", "one")
	_, err = s.Create(t.Context(), again)
	wantError(t, "the same again", err, task.ErrConflict)
	_, err = s.Get(t.Context(), "ann", "two")
	wantError(t, "another id", err, task.ErrUnknown)
	for _, id := range []string{"", ".", "*", ">", "a b", "../x", "\x00", "日本", strings.Repeat("x", 4000)} {
		if _, err = s.Get(t.Context(), "ann", id); !errors.Is(err, task.ErrUnknown) {
			t.Errorf("Get of %.20q: %v", id, err)
		}
		if _, err = s.Wait(t.Context(), "ann", id, 0); !errors.Is(err, task.ErrUnknown) {
			t.Errorf("Wait for %.20q: %v", id, err)
		}
	}
}

func testOwners(t *testing.T, s task.Store) {
	owners := []string{"", "ann", "ann.", "ann/x", "Ann", "*", ">", "a b", "\x00", "日本", strings.Repeat("x", 4000)}
	ids := map[string]string{}
	for i, o := range owners {
		ids[o] = mustCreate(t, s, record(o, fmt.Sprint("id", i))).ID
	}
	for _, o := range owners {
		page, next, err := s.List(t.Context(), o, "", 100)
		if err != nil || next != "" || len(page) != 1 || page[0].ID != ids[o] || page[0].Owner != o {
			t.Errorf("%.20q lists %d tasks, next %q, %v", o, len(page), next, err)
		}
		for other, id := range ids {
			r, err := s.Get(t.Context(), o, id)
			if other == o {
				if err != nil || r.Owner != o {
					t.Errorf("%.20q: %v", o, err)
				}
				continue
			}
			wantError(t, fmt.Sprintf("Get of %.20q for %.20q", other, o), err, task.ErrUnknown)
			_, err = s.Wait(t.Context(), o, id, 0)
			wantError(t, fmt.Sprintf("Wait of %.20q for %.20q", other, o), err, task.ErrUnknown)
			r = record(o, id)
			r.Revision = 1
			_, err = s.Update(t.Context(), r)
			wantError(t, fmt.Sprintf("Update of %.20q for %.20q", other, o), err, task.ErrUnknown)
		}
	}
}

func testUpdate(t *testing.T, s task.Store) {
	first := mustCreate(t, s, record("ann", "one"))
	second := first
	second.Message = "second"
	second, err := s.Update(t.Context(), second)
	if err != nil || second.Revision == first.Revision || second.Message != "second" {
		t.Fatalf("%+v, %v", second, err)
	}
	stale := first
	stale.Message = "stale"
	_, err = s.Update(t.Context(), stale)
	wantError(t, "an old revision", err, task.ErrConflict)
	got, err := s.Get(t.Context(), "ann", first.ID)
	if err != nil || got.Revision != second.Revision {
		t.Errorf("after it: %d, %v", got.Revision, err)
	}
	same(t, got, second)
	third := ended(second, task.Completed, `{"content":[]}`)
	if third, err = s.Update(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	got, err = s.Get(t.Context(), "ann", first.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, third)
	unknown := record("ann", "two")
	unknown.Revision = third.Revision
	_, err = s.Update(t.Context(), unknown)
	wantError(t, "an unknown task", err, task.ErrUnknown)
}

func testCancelled(t *testing.T, s task.Store) {
	id := mustCreate(t, s, record("ann", "one")).ID
	r, err := change(t.Context(), s, "ann", id, func(r *task.Record) bool {
		*r = ended(*r, task.Cancelled, "")
		r.Answer = nil
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		got, err := s.Wait(t.Context(), "ann", id, r.Revision)
		if err == nil && (got.Status != task.Cancelled || got.Answer == nil) {
			err = fmt.Errorf("%+v", got)
		}
		waited <- err
	}()
	if _, err = change(t.Context(), s, "ann", id, func(r *task.Record) bool { r.Answer = &task.Answer{Result: []byte(`{}`)}; return true }); err != nil {
		t.Error(err)
	}
	select {
	case err := <-waited:
		if err != nil {
			t.Errorf("Wait: %v", err)
		}
	case <-time.After(slack):
		t.Error("Wait does not return")
	}
	got, err := s.Get(t.Context(), "ann", id)
	if err != nil || got.Status != task.Cancelled || got.Answer == nil || string(got.Answer.Result) != `{}` || !got.Expires.Equal(r.Expires) {
		t.Errorf("%+v, %v", got, err)
	}
}

// change applies f to a record by compare-and-set, until no other update comes in between. f returns false to leave the
// record as it is.
func change(ctx context.Context, s task.Store, owner, id string, f func(*task.Record) bool) (task.Record, error) {
	for {
		r, err := s.Get(ctx, owner, id)
		if err != nil || !f(&r) {
			return r, err
		}
		if stored, err := s.Update(ctx, r); !errors.Is(err, task.ErrConflict) {
			return stored, err
		}
	}
}

func testConcurrentUpdates(t *testing.T, s task.Store) {
	const writers, each = 4, 15
	r := record("ann", "one")
	r.Progress = 0
	id := mustCreate(t, s, r).ID
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if _, err := change(t.Context(), s, "ann", id, func(r *task.Record) bool { r.Progress++; return true }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if r, err := s.Get(t.Context(), "ann", id); err != nil || r.Progress != writers*each {
		t.Errorf("%v of %d updates counted, %v", r.Progress, writers*each, err)
	}
}

func testRacingEnds(t *testing.T, s task.Store) {
	for i := range 20 {
		id := mustCreate(t, s, record("ann", fmt.Sprint("t", i))).ID
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []task.Status
		for _, status := range []task.Status{task.Completed, task.Cancelled, task.Failed} {
			all.Go(func() {
				var mine bool
				_, err := change(t.Context(), s, "ann", id, func(r *task.Record) bool {
					if mine = !r.Status.Final(); mine {
						*r = ended(*r, status, `{}`)
					}
					return mine
				})
				if err != nil {
					t.Error(err)
				}
				if mine {
					mu.Lock()
					defer mu.Unlock()
					won = append(won, status)
				}
			})
		}
		all.Wait()
		if r, err := s.Get(t.Context(), "ann", id); err != nil || len(won) != 1 || r.Status != won[0] {
			t.Errorf("won: %v; stored: %v, %v", won, r.Status, err)
		}
	}
}

func testLarge(t *testing.T, s task.Store) {
	r := mustCreate(t, s, record("ann", "one"))
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 1500<<10) + `"}]}`
	want, err := s.Update(t.Context(), ended(r, task.Completed, result))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), "ann", r.ID)
	if err != nil || got.Answer == nil || string(got.Answer.Result) != result {
		t.Errorf("it is not as it was: %v", err)
	}
	same(t, got, want)
	if got, err = s.Wait(t.Context(), "ann", r.ID, r.Revision); err != nil || string(got.Answer.Result) != result {
		t.Errorf("Wait: it is not as it was: %v", err)
	}
}

func testAliases(t *testing.T, s task.Store) {
	first := mustCreate(t, s, record("ann", "one"))
	second := first
	second.Message, second.Questions = "second", map[string]json.RawMessage{"1.ok": json.RawMessage(`{}`)}
	if _, err := s.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	want := record("ann", first.ID)
	want.Started, want.Created, want.Updated = first.Started, first.Created, first.Updated
	same(t, first, want)
}
