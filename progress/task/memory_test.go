package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// SPEC 11.8.
func TestMemory(t *testing.T) {
	tasktest.TestStore(t, func(*testing.T) task.Store { return new(task.Memory) })
}

// SPEC 11.8: any process that has the store can answer.
func TestMemoryReplicas(t *testing.T) {
	tasktest.TestReplicas(t, func(*testing.T) (runs, asks task.Store) {
		m := new(task.Memory)
		return m, m
	})
}

// SPEC 11.8: a finished task may be updated too. It then takes the room that it has by then, and it
// is others that go for it.
func TestMemoryUpdatesAFinishedTask(t *testing.T) {
	m := &task.Memory{MaxBytes: 8 << 10}
	ctx := t.Context()
	create := func(id string, status task.Status) (task.Record, error) {
		return m.Create(ctx, task.Record{ID: id, Status: status, Expires: time.Now().Add(time.Hour)})
	}
	sized := func(r task.Record, n int) task.Record {
		r.Answer = &task.Answer{Result: json.RawMessage(strings.Repeat(" ", n))}
		return r
	}
	// It is the first to expire, so the first to go for any other.
	first, err := create("first", task.Completed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := create(fmt.Sprint("other ", i), task.Completed); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{4 << 10, 1 << 10, 4 << 10, 0, 6 << 10} {
		if first, err = m.Update(ctx, sized(first, n)); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got, err := m.Get(ctx, "", "first"); err != nil || len(got.Answer.Result) != n {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := m.Update(ctx, sized(first, 8<<10)); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	// Its room is there for others, and no more than that.
	for i := range 9 {
		_, err := create(fmt.Sprint("running ", i), task.Working)
		if want := i >= 7; errors.Is(err, task.ErrFull) != want || err != nil && !want {
			t.Errorf("running %d: %v", i, err)
		}
	}
	if _, err := m.Get(ctx, "", "first"); !errors.Is(err, task.ErrUnknown) {
		t.Errorf("it is there: %v", err)
	}
}

// SPEC 11.7: a client that has more than its share of the tasks or of the bytes removes its own results, and no result
// of a client that has less.
func TestMemoryIsShared(t *testing.T) {
	for _, tc := range []struct {
		name   string
		memory *task.Memory
		tasks  int // of the greedy one
		bytes  int // of each
	}{
		{"many tasks", new(task.Memory), 3000, 0},
		{"large results", new(task.Memory), 200, 1 << 20},
		{"small bounds", &task.Memory{MaxTasks: 5, MaxBytes: 1 << 20}, 50, 100 << 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, m := t.Context(), tc.memory
			ended := func(owner, id string, bytes int) {
				t.Helper()
				r, err := m.Create(ctx, task.Record{Owner: owner, ID: id, Status: task.Working, Retention: time.Minute})
				if err != nil {
					t.Fatalf("%s %s: %v", owner, id, err)
				}
				r.Status, r.Expires = task.Completed, time.Now().Add(time.Minute)
				r.Answer = &task.Answer{Result: json.RawMessage(strings.Repeat(" ", bytes))}
				if _, err := m.Update(ctx, r); err != nil {
					t.Fatalf("%s %s: %v", owner, id, err)
				}
			}
			has := func(owner, id string) bool {
				_, err := m.Get(ctx, owner, id)
				return err == nil
			}
			ended("modest", "a", tc.bytes) // expires first
			for i := range tc.tasks {
				ended("greedy", fmt.Sprint(i), tc.bytes)
				if i == tc.tasks/2 {
					ended("modest", "b", tc.bytes)
				}
			}
			if !has("modest", "a") || !has("modest", "b") {
				t.Error("a modest client has lost a result")
			}
			if has("greedy", "0") || !has("greedy", fmt.Sprint(tc.tasks-1)) {
				t.Error("the greedy client has its first result, or has lost its last")
			}
			// The room is there for a third one, and what expires is gone from its owner's share too.
			ended("third", "c", tc.bytes)
			if !has("modest", "a") || !has("third", "c") {
				t.Error("a modest client has lost a result to a third one")
			}
		})
	}
}

// SPEC 11.7: whatever is created, updated and expires, the bounds hold, and nobody loses a result who has not had the
// largest share.
func TestMemoryModel(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			m := &task.Memory{MaxTasks: 8, MaxBytes: 24 << 10}
			running := map[string]task.Record{}
			for i := range 2000 {
				owner := string(rune('a' + rng.IntN(3)))
				switch r, is := running[owner]; {
				case rng.IntN(10) == 0:
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				case !is:
					r, err := m.Create(t.Context(), task.Record{Owner: owner, ID: fmt.Sprint(i), Status: task.Working})
					if err == nil {
						running[owner] = r
					} else if !errors.Is(err, task.ErrFull) {
						t.Fatal(err)
					}
				default:
					r.Status, r.Expires = task.Completed, time.Now().Add(time.Duration(1+rng.IntN(9))*time.Second)
					r.Answer = &task.Answer{Result: json.RawMessage(strings.Repeat(" ", rng.IntN(6<<10)))}
					r, err := m.Update(t.Context(), r)
					if err != nil && !errors.Is(err, task.ErrTooLarge) {
						t.Fatal(err)
					} else if err == nil {
						delete(running, owner)
						if rng.IntN(4) == 0 { // a final one may change, too
							if _, err := m.Update(t.Context(), r); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				count, bytes := 0, 0
				for _, owner := range []string{"a", "b", "c"} {
					page, _, err := m.List(t.Context(), owner, "", 100)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range page {
						count++
						bytes += 1 << 10
						if r.Answer != nil {
							bytes += len(r.Answer.Result)
						}
					}
				}
				if count > 8 || bytes > 24<<10 {
					t.Fatalf("seed %d, step %d: %d tasks, %d bytes", seed, i, count, bytes)
				}
			}
			time.Sleep(time.Hour)
			for owner, r := range running {
				if _, err := m.Get(t.Context(), owner, r.ID); err != nil {
					t.Errorf("seed %d: a running task has gone: %v", seed, err)
				}
			}
		})
	}
}
