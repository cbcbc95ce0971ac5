package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// SPEC 11.8: any process that has the store can answer.
func TestMemory(t *testing.T) {
	tasktest.TestStore(t, func(*testing.T) (a, b task.Store) {
		m := task.NewMemory(0, 0)
		return m, m
	})
}

// A both is a context that ends, and changes the record, when its channel is asked for.
type both struct {
	context.Context
	change func()
	end    func()
}

func (b both) Done() <-chan struct{} {
	b.change()
	b.end()
	return b.Context.Done()
}

// SPEC 11.8: a record that has changed wins over the end of the wait.
func TestMemoryChangeAtTheEndOfTheWait(t *testing.T) {
	m := task.NewMemory(0, 0)
	r, err := m.Create(t.Context(), task.Record{ID: "a", Status: task.Working, Expires: time.Now().Add(time.Hour)})
	for range 100 {
		old := r.Revision
		ctx, cancel := context.WithCancel(t.Context())
		change := sync.OnceFunc(func() { r, err = m.Update(t.Context(), r) })
		if got, failed := m.Wait(both{ctx, change, cancel}, "", "a", old); err != nil || failed != nil || got.Revision != r.Revision {
			t.Fatalf("revision %d, %v; %d, %v", r.Revision, err, got.Revision, failed)
		}
	}
}

// SPEC 11.8: what has expired is let go of, each at its time, also if nobody asks for anything any more.
func TestMemoryLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := task.NewMemory(0, 0)
		var kept []weak.Pointer[task.Answer]
		for i := range 3 {
			answer := &task.Answer{Result: json.RawMessage("{}")}
			kept = append(kept, weak.Make(answer))
			r := task.Record{ID: fmt.Sprint(i), Status: task.Completed, Answer: answer, Expires: time.Now().Add(time.Duration(1+i) * time.Minute)}
			if _, err := m.Create(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for gone := range len(kept) + 1 {
			synctest.Wait()
			runtime.GC()
			for i, p := range kept {
				if is := p.Value() == nil; is != (i < gone) {
					t.Errorf("after %d min: the answer of task %d is gone: %t", gone, i, is)
				}
			}
			time.Sleep(time.Minute)
		}
		runtime.KeepAlive(m)
	})
}

// SPEC 11.8: a finished task may be updated too. It then takes the room that it has by then, and it
// is others that go for it.
func TestMemoryUpdatesAFinishedTask(t *testing.T) {
	m := task.NewMemory(0, 8<<10)
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

// A kept task is what a reference of Memory knows of one.
type kept struct {
	owner, id string
	size      int
	expires   time.Time // zero while it runs
}

// reference is what Memory promises, without its heaps: see room.
type reference struct {
	tasks, bytes int
	all          []kept
}

func (m *reference) share(owner string) float64 {
	n, size := 0, 0
	for _, k := range m.all {
		if k.owner == owner && !k.expires.IsZero() {
			n++
			size += k.size
		}
	}
	return max(float64(n)/float64(m.tasks), float64(size)/float64(m.bytes))
}

// room removes final tasks until there is room for another size, and for one more task where more is 1: of the owner
// whose final tasks take the largest part of a bound, the one that expires first. Where two owners take the same, it is
// the one who has lost it in fact.
func (m *reference) room(size, more int, has func(kept) bool) {
	for {
		all := 0
		for _, k := range m.all {
			all += k.size
		}
		if all+size <= m.bytes && len(m.all)+more <= m.tasks {
			return
		}
		var victim *kept
		for i := range m.all {
			k := &m.all[i]
			if k.expires.IsZero() {
				continue
			}
			switch {
			case victim == nil, m.share(k.owner) > m.share(victim.owner), k.owner == victim.owner && k.expires.Before(victim.expires),
				k.owner != victim.owner && m.share(k.owner) == m.share(victim.owner) && has(*victim) && !has(*k):
				victim = k
			}
		}
		m.remove(*victim)
	}
}

func (m *reference) remove(k kept) {
	m.all = slices.DeleteFunc(m.all, func(other kept) bool { return other == k })
}

// SPEC 11.7: whatever is created, updated and expires, the bounds hold, and what goes early is of the client that takes
// the most.
func TestMemoryModel(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			const overhead = 1 << 10 // of a record, beside its texts
			ref := &reference{tasks: 8, bytes: 24 << 10}
			m := task.NewMemory(ref.tasks, int64(ref.bytes))
			has := func(k kept) bool { _, err := m.Get(t.Context(), k.owner, k.id); return err == nil }
			for i := range 400 {
				if rng.IntN(10) == 0 {
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				}
				ref.all = slices.DeleteFunc(ref.all, func(k kept) bool { return !k.expires.IsZero() && !time.Now().Before(k.expires) })
				k := kept{owner: string(rune('a' + rng.IntN(3))), id: fmt.Sprint("task ", i)}
				k.size = overhead + len(k.id) + len(k.owner)
				if n := len(ref.all); n > 0 && rng.IntN(3) > 0 { // one ends, or changes after its end
					old := ref.all[rng.IntN(n)]
					r, err := m.Get(t.Context(), old.owner, old.id)
					if err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, i, err)
					}
					k = old
					result := strings.Repeat(" ", rng.IntN(6<<10))
					k.size, k.expires = overhead+len(k.id)+len(k.owner)+len(result), time.Now().Add(time.Duration(1+rng.Int64N(1e10)))
					r.Status, r.Expires, r.Answer = task.Completed, k.expires, &task.Answer{Result: json.RawMessage(result)}
					running := 0
					for _, other := range ref.all {
						if other.expires.IsZero() && other.id != k.id {
							running += other.size
						}
					}
					if _, err = m.Update(t.Context(), r); errors.Is(err, task.ErrTooLarge) != (running+k.size > ref.bytes) {
						t.Fatalf("seed %d, step %d: %v", seed, i, err)
					} else if err == nil {
						ref.remove(old)
						ref.room(k.size, 1, has)
						ref.all = append(ref.all, k)
					}
				} else {
					running, size := 0, 0
					for _, other := range ref.all {
						if other.expires.IsZero() {
							running, size = running+1, size+other.size
						}
					}
					_, err := m.Create(t.Context(), task.Record{Owner: k.owner, ID: k.id, Status: task.Working})
					if full := running >= ref.tasks || size+k.size > ref.bytes; errors.Is(err, task.ErrFull) != full {
						t.Fatalf("seed %d, step %d: %v", seed, i, err)
					} else if err == nil {
						ref.room(k.size, 1, has)
						ref.all = append(ref.all, k)
					}
				}
				for _, owner := range []string{"a", "b", "c"} {
					var want, got []string
					for _, k := range ref.all {
						if k.owner == owner {
							want = append(want, k.id)
						}
					}
					page, _, err := m.List(t.Context(), owner, "", 100)
					for _, r := range page {
						got = append(got, r.ID)
					}
					slices.Sort(want)
					slices.Sort(got)
					if err != nil || !slices.Equal(want, got) {
						t.Fatalf("seed %d, step %d: %s has %v, want %v: %v", seed, i, owner, got, want, err)
					}
				}
			}
			time.Sleep(time.Hour)
		})
	}
}

// SPEC 11.8: of the tasks of an owner that expire together, the oldest goes first.
func TestMemoryEvictsTheOldest(t *testing.T) {
	m, expires := task.NewMemory(20, 0), time.Now().Add(time.Hour)
	for i := range 40 {
		r := task.Record{ID: fmt.Sprint(i), Status: task.Completed, Expires: expires}
		if _, err := m.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Get(t.Context(), "", fmt.Sprint(i-20)); i >= 20 && err == nil {
			t.Fatalf("task %d is there beside task %d", i-20, i)
		}
		if _, err := m.Get(t.Context(), "", fmt.Sprint(max(0, i-19))); err != nil {
			t.Fatalf("task %d has gone before an older one: %v", max(0, i-19), err)
		}
	}
}

// A finished task in a full store, which evicts one, with many owners and with one.
func BenchmarkEvict(b *testing.B) {
	for _, owners := range []int{1, 10000} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) {
			const most = 10000
			m, i, expires := task.NewMemory(most, 1<<30), 0, time.Now().Add(time.Hour)
			create := func() {
				i++
				r := task.Record{ID: fmt.Sprint(i), Owner: fmt.Sprint(i % owners), Status: task.Completed, Expires: expires}
				if _, err := m.Create(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			for range most {
				create()
			}
			for b.Loop() {
				create()
			}
		})
	}
}
