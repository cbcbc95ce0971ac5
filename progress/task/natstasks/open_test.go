package natstasks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Open returns the mistakes in its options, as a *timeout.ConfigError, and in an existing bucket.
func TestOpenErrors(t *testing.T) { inBubble(t, testOpenErrors) }

func testOpenErrors(t *world) {
	js, ctx := t.connect(t.link()), context.Background()
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "others"}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "forever-leases"}); err != nil {
		t.Fatal(err)
	}
	// Streams as this package makes them, but for one setting each.
	sound := jetstream.StreamConfig{MaxMsgsPerSubject: 1, AllowMsgTTL: true, Discard: jetstream.DiscardNew, AllowRollup: true}
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"KV_ages":          func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"KV_discards":      func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"KV_direct":        func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"KV_stays":         func(c *jetstream.StreamConfig) { c.DenyPurge, c.AllowRollup = true, false },
		"KV_behind-leases": func(c *jetstream.StreamConfig) { c.MaxAge, c.AllowDirect = time.Minute, true },
		"KV_kept-leases":   func(c *jetstream.StreamConfig) { c.MaxAge, c.DenyPurge, c.AllowRollup = time.Minute, true, false },
		"OBJ_old-results":  func(*jetstream.StreamConfig) {},
	} {
		c := sound
		c.Name, c.Subjects = name, []string{"$" + strings.Replace(name, "_", ".", 1) + ".>"}
		change(&c)
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(name, err)
		}
	}
	for bucket, want := range map[string]string{
		"ages": "KV_ages", "discards": "KV_discards", "direct": "KV_direct", "stays": "KV_stays", "behind": "KV_behind-leases", "kept": "KV_kept-leases",
		"old": "OBJ_old-results", "others": "KV_others", "forever": "KV_forever-leases",
	} {
		s, err := natstasks.Open(ctx, js, natstasks.Options{Bucket: bucket})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "natstasks: ") || !strings.Contains(err.Error(), want+" that was made by something else: want ") {
			t.Errorf("%s: %v", bucket, err)
		}
	}
	for want, opts := range map[string]natstasks.Options{
		`Bucket="a.b": want up to 100 letters, digits, - and _`: {Bucket: "a.b"},
		`Replicas="6": want 1 to 5`:                             {Replicas: 6},
		`Lease="999.999999ms": want 1s or more`:                 {Lease: time.Second - 1},
		`MaxTasks="-1": want 1 or more`:                         {MaxTasks: -1},
		`MaxBytes="-1": want 1 or more`:                         {MaxBytes: -1},
	} {
		_, err := natstasks.Open(ctx, js, opts)
		if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || err.Error() != "natstasks: timeout: Options."+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := natstasks.Open(ctx, js, natstasks.Options{Replicas: 3}); err == nil || !strings.Contains(err.Error(), "replicas > 1 not supported") {
		t.Errorf("more replicas than servers: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := natstasks.Open(cancelled, js, natstasks.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// Where JetStream is not there, or may not be used, Open says so and what it wanted.
func TestOpenForbidden(t *testing.T) {
	for _, tc := range []struct {
		name      string
		jetStream bool
		deny      []string
		want      string
	}{
		{"no JetStream", false, nil, "jetstream not enabled"},
		{"nothing about the account", true, []string{"$JS.API.INFO"}, "asking for the account: "},
		{"no streams to be made", true, []string{"$JS.API.STREAM.CREATE.>"}, "making stream KV_mcp-tasks: "},
		{"no streams to be seen", true, []string{"$JS.API.STREAM.INFO.>"}, "asking for stream KV_mcp-tasks: "},
		{"no leases", true, []string{"$KV.mcp-tasks-leases.>"}, `lease in bucket "mcp-tasks-leases": `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w = newWorld(w, server.Options{DontListen: true, JetStream: tc.jetStream,
					Users: []*server.User{{Username: "ann", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: tc.deny, Allow: []string{">"}}}}}})
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				store, err := natstasks.Open(ctx, w.connect(w.link(), nats.UserInfo("ann", "x")), natstasks.Options{})
				if err == nil {
					store.Close()
					t.Fatal("it opens")
				}
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q in it", err, tc.want)
				}
			})
		})
	}
}

// SPEC 11.7: the bounds, each with its error.
func TestBounds(t *testing.T) { inBubble(t, testBounds) }

func testBounds(t *world) {
	s := t.openWith(natstasks.Options{MaxTasks: 2, MaxBytes: 4 << 20})
	ctx := context.Background()
	r := task.Record{ID: "a", Owner: "ann", Status: task.Working, Retention: time.Minute}
	first, err := s.Create(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	r.ID = "b"
	if _, err := s.Create(ctx, r); err != nil {
		t.Fatal(err)
	}
	r.ID = "c"
	if _, err := s.Create(ctx, r); !errors.Is(err, task.ErrFull) {
		t.Errorf("a third: %v", err)
	}
	large := func(n int) task.Record {
		out := first
		out.Status, out.Expires = task.Completed, time.Now().Add(time.Minute)
		out.Answer = &task.Answer{Result: []byte(`"` + strings.Repeat("x", n) + `"`)}
		return out
	}
	if _, err := s.Update(ctx, large(16<<20)); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("a result above the bound: %v", err)
	}
	message := first
	message.Message = strings.Repeat("x", 2<<20)
	if _, err := s.Update(ctx, message); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("a record above the maximum payload: %v", err)
	}
	for _, id := range []string{"", "a.b", "a b", "*", ">", strings.Repeat("x", 129)} {
		r.ID = id
		if _, err := s.Create(ctx, r); err == nil || !strings.Contains(err.Error(), "want letters, digits") {
			t.Errorf("id %.20q: %v", id, err)
		}
	}
	// Though the bucket is full, its tasks can end.
	if _, err := s.Update(ctx, large(280<<10)); err != nil {
		t.Errorf("the end of a task: %v", err)
	}
}

// SPEC 11.7: while records that may have been stored cannot be purged, no more than 1000 of them are remembered, and
// further calls stay plain. When they have been purged, calls become tasks again, also if the stream was deleted.
func TestOrphansBounded(t *testing.T) {
	inBubble(t, func(w *world) {
		s, f := w.openFaulty()
		f.mute.Store(true)
		for i := range 1002 {
			_, err := s.Create(context.Background(), running(fmt.Sprint(i)))
			if full := i >= 1000; err == nil || errors.Is(err, task.ErrFull) != full {
				t.Fatalf("create %d: %v", i, err)
			}
		}
		time.Sleep(lease)
		if _, err := s.Create(context.Background(), running("a")); !errors.Is(err, task.ErrFull) {
			t.Errorf("while they cannot be purged: %v", err)
		}
		if err := w.connect(w.link()).DeleteStream(context.Background(), tasksStream); err != nil {
			t.Fatal(err)
		}
		f.mute.Store(false)
		if _, err := s.Create(context.Background(), running("b")); !errors.Is(err, task.ErrFull) { // makes the stream again
			t.Errorf("without a stream: %v", err)
		}
		time.Sleep(lease)
		w.create(s, "c")
	})
}

// SPEC 11.7: a task in a bucket that is full can end, and be cancelled.
func TestFull(t *testing.T) {
	inBubble(t, func(w *world) { testFull(t, w, 1) })
}

func testFull(t *testing.T, w *world, replicas int) {
	for name, tc := range map[string]struct {
		bound natstasks.Options
		tasks int // at least
	}{
		"tasks": {natstasks.Options{MaxTasks: 20}, 20},
		"bytes": {natstasks.Options{MaxBytes: 256 << 10}, 50},
	} {
		func() {
			tc.bound.Bucket, tc.bound.Replicas = "full-of-"+name, replicas
			s := w.openWith(tc.bound)
			var all []task.Record
			for {
				r := running(fmt.Sprint("id", len(all)))
				r.Message = strings.Repeat("x", 1<<10)
				r, err := s.Create(context.Background(), r)
				if errors.Is(err, task.ErrFull) {
					break
				}
				if err != nil || len(all) > 1000 {
					t.Fatal(len(all), err)
				}
				all = append(all, r)
			}
			if len(all) < tc.tasks {
				t.Errorf("%s: full of %d tasks", name, len(all))
			}
			for i, r := range all {
				if i%2 == 0 {
					r = ended(r, `{"content":[{"type":"text","text":"done"}]}`)
				} else {
					r = r.Lost(time.Now())
				}
				if _, err := s.Update(context.Background(), r); err != nil {
					t.Fatalf("%s: end of task %d of %d: %v", name, i, len(all), err)
				}
			}
		}()
	}
}

// The settings are those of the bucket that is there.
func TestSettingsStay(t *testing.T) {
	inBubble(t, func(w *world) {
		w.openWith(natstasks.Options{Lease: time.Minute})
		w.openWith(natstasks.Options{Lease: 2 * time.Minute})
		st, err := w.connect(w.link()).Stream(context.Background(), leasesStream)
		if err != nil {
			t.Fatal(err)
		}
		if c := st.CachedInfo(); c.Config.MaxAge != time.Minute || c.State.Msgs != 2 {
			t.Errorf("%v, %d leases", c.Config.MaxAge, c.State.Msgs)
		}
	})
}

// A replica whose buckets somebody deletes makes them anew, and says so; that of the tasks alone for the next task.
func TestBucketsDeleted(t *testing.T) {
	inBubble(t, func(w *world) {
		var log bytes.Buffer
		s, js := w.openWith(natstasks.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), w.connect(w.link())
		w.create(s, "one")
		if err := js.DeleteStream(context.Background(), tasksStream); err != nil {
			t.Fatal(err)
		}
		w.create(s, "two")
		for _, name := range []string{tasksStream, leasesStream} {
			if err := js.DeleteStream(context.Background(), name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(lease)
		w.create(s, "three")
		synctest.Wait()
		if got := log.String(); !strings.Contains(got, "the lease cannot be renewed") || !strings.Contains(got, "the lease is renewed again") {
			t.Error(got)
		}
	})
}

// A listing goes on where its keys are no longer known: through another replica, and after a long time. What has expired
// meanwhile is left out.
func TestListGoesOn(t *testing.T) {
	for name, pause := range map[string]time.Duration{"at once": 0, "just before": time.Minute - time.Millisecond, "later": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				stores := []*natstasks.Store{w.open(), w.open()}
				want := map[string]int{}
				for i := range 9 {
					want[w.create(stores[i%2], fmt.Sprint("t", i)).ID] = 1
				}
				seen, cursor := map[string]int{}, ""
				for n := 0; ; n++ {
					page, next, err := stores[n/2%2].List(context.Background(), "ann", cursor, 2)
					if err != nil || len(page) > 2 {
						t.Fatal(len(page), err)
					}
					for _, r := range page {
						seen[r.ID]++
					}
					if cursor = next; next == "" {
						break
					}
					time.Sleep(pause)
				}
				if !maps.Equal(want, seen) {
					t.Errorf("listed: %v, want %v", seen, want)
				}
			})
		})
	}
}

// SPEC 3.24: a logger that blocks, panics or ends its goroutine does not keep the lease from being renewed.
func TestLeaseOutlastsLogger(t *testing.T) {
	for how, attack := range map[string]func(release chan struct{}){
		"block":  func(release chan struct{}) { <-release },
		"panic":  func(chan struct{}) { panic("disk full") },
		"goexit": func(chan struct{}) { runtime.Goexit() },
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(w *world) {
				release, hit := make(chan struct{}), make(chan struct{}, 100)
				w.Cleanup(func() { close(release) })
				w.openWith(natstasks.Options{Logger: slog.New(hostileHandler{func() { hit <- struct{}{}; attack(release) }})})
				js := w.connect(w.link())
				if err := js.DeleteStream(context.Background(), leasesStream); err != nil {
					t.Fatal(err)
				}
				<-hit // it cannot be renewed
				time.Sleep(lease)
				if n := w.messages(js, leasesStream); n != 1 {
					t.Errorf("%d leases", n)
				}
			})
		})
	}
}

type hostileHandler struct{ attack func() }

func (h hostileHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h hostileHandler) Handle(context.Context, slog.Record) error { h.attack(); return nil }
func (h hostileHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h hostileHandler) WithGroup(string) slog.Handler             { return h }

// A store that is closed takes no task, which would be nobody's, and its waits end, for tasks of this replica and of others.
// An outcome may still come.
func TestClosedStore(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.open(), w.open()
		mine, others := w.create(a, "one"), w.create(b, "one")
		ends := make(chan error, 2)
		for _, r := range []task.Record{mine, others} {
			go func() {
				_, err := a.Wait(context.Background(), "ann", r.ID, r.Revision)
				ends <- err
			}()
		}
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-ends; err == nil || errors.Is(err, task.ErrUnknown) {
				t.Error(err)
			}
		}
		if r, err := a.Create(context.Background(), running("two")); err == nil {
			t.Errorf("%+v", r)
		}
		if _, err := a.Update(context.Background(), ended(mine, `{}`)); err != nil {
			t.Error(err)
		}
	})
}

// Close returns although a watch is only beginning.
func TestCloseAtOnce(t *testing.T) {
	w := newWorld(t, server.Options{DontListen: true, JetStream: true})
	js := w.connect(w.link())
	for i := range 100 {
		s, err := natstasks.Open(t.Context(), js, natstasks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := w.create(s, "x")
		go s.Wait(t.Context(), "ann", r.ID, r.Revision)
		time.Sleep(time.Duration(i) * 40 * time.Microsecond)
		s.Close()
	}
}
