package natstasks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

// Open returns the mistakes in an option and in an existing bucket.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, -1, t.TempDir()).ClientURL())
	ctx := t.Context()
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
	for _, tc := range []struct {
		name string
		opt  natstasks.Option
		want string
	}{
		{"tasks that end by their age", natstasks.WithBucket("ages"), "KV_ages that was made by something else"},
		{"tasks that make room for others", natstasks.WithBucket("discards"), "KV_discards that was made by something else"},
		{"tasks from a server that is behind", natstasks.WithBucket("direct"), "KV_direct that was made by something else"},
		{"tasks that cannot be purged", natstasks.WithBucket("stays"), "KV_stays that was made by something else"},
		{"leases from a server that is behind", natstasks.WithBucket("behind"), "KV_behind-leases that was made by something else"},
		{"leases that cannot be given up", natstasks.WithBucket("kept"), "KV_kept-leases that was made by something else"},
		{"results that never expire", natstasks.WithBucket("old"), "OBJ_old-results that was made by something else"},
		{"no bucket", natstasks.WithBucket(""), `bucket "": want up to 100 letters`},
		{"a subject for a bucket", natstasks.WithBucket("a.b"), `bucket "a.b": want up to 100 letters`},
		{"no replicas", natstasks.WithReplicas(0), "0 replicas: want 1 to 5"},
		{"more replicas than servers", natstasks.WithReplicas(3), "replicas > 1 not supported"},
		{"a lease that is too short", natstasks.WithLease(time.Second - 1), "a lease of 999.999999ms: want 1s or more"},
		{"no tasks", natstasks.WithMaxTasks(0), "at most 0 tasks: want 1 or more"},
		{"no bytes", natstasks.WithMaxBytes(0), "at most 0 bytes: want 1 or more"},
		{"no results", natstasks.WithMaxResult(0), "results of at most 0 bytes: want 1 or more"},
		{"a bucket of somebody else", natstasks.WithBucket("others"), "KV_others that was made by something else: want allow_msg_ttl"},
		{"leases that never end", natstasks.WithBucket("forever"), "KV_forever-leases that was made by something else: want a max_age"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := natstasks.Open(ctx, js, tc.opt)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.HasPrefix(err.Error(), "natstasks: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q in it", err, tc.want)
			}
		})
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := natstasks.Open(cancelled, js); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// SPEC 11.7: the bounds, each with its error.
func TestBounds(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	s := open(t, url, natstasks.WithMaxTasks(2), natstasks.WithMaxResult(300<<10), natstasks.WithMaxBytes(4<<20))
	ctx := t.Context()
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
	if _, err := s.Update(ctx, large(301<<10)); !errors.Is(err, task.ErrTooLarge) {
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

// The settings are those of the bucket that is there.
func TestSettingsStay(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	open(t, url, natstasks.WithLease(time.Minute))
	open(t, url, natstasks.WithLease(2*time.Minute))
	st, err := connect(t, url).Stream(t.Context(), "KV_"+natstasks.DefaultBucket+"-leases")
	if err != nil {
		t.Fatal(err)
	}
	if c := st.CachedInfo(); c.Config.MaxAge != time.Minute || c.State.Msgs != 2 {
		t.Errorf("%v, %d leases", c.Config.MaxAge, c.State.Msgs)
	}
}

// A replica whose buckets somebody deletes makes them anew, and says so.
func TestBucketsDeleted(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	var log lockedBuffer
	s := open(t, url, natstasks.WithLease(lease), natstasks.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	js := connect(t, url)
	for _, name := range []string{"", "-leases"} {
		if err := js.DeleteKeyValue(t.Context(), natstasks.DefaultBucket+name); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	eventually(t, lease+2*slack, func() bool {
		n++
		_, err := s.Create(t.Context(), task.Record{ID: fmt.Sprint("id", n), Status: task.Working})
		return err == nil && strings.Contains(log.String(), "the lease is renewed again")
	}, func() string { return log.String() })
	if !strings.Contains(log.String(), "the lease cannot be renewed") {
		t.Error(log.String())
	}
}

// SPEC 3.24: a logger that blocks, panics or ends its goroutine does not keep the lease from being renewed.
func TestLeaseOutlastsLogger(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for how, attack := range map[string]func(){
		"block":  func() { <-release },
		"panic":  func() { panic("disk full") },
		"goexit": runtime.Goexit,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			url := startServer(t, -1, t.TempDir()).ClientURL()
			hit := make(chan struct{}, 100)
			open(t, url, natstasks.WithLease(lease), natstasks.WithLogger(slog.New(hostileHandler{func() { hit <- struct{}{}; attack() }})))
			js := connect(t, url)
			if err := js.DeleteKeyValue(t.Context(), natstasks.DefaultBucket+"-leases"); err != nil {
				t.Fatal(err)
			}
			<-hit // it cannot be renewed
			eventually(t, lease+2*slack, func() bool {
				st, err := js.Stream(t.Context(), "KV_"+natstasks.DefaultBucket+"-leases")
				return err == nil && st.CachedInfo().State.Msgs == 1
			}, func() string { return "there is no lease" })
		})
	}
}

type hostileHandler struct{ attack func() }

func (h hostileHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h hostileHandler) Handle(context.Context, slog.Record) error { h.attack(); return nil }
func (h hostileHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h hostileHandler) WithGroup(string) slog.Handler             { return h }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Close returns although a watch is only beginning.
func TestCloseAtOnce(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	js := connect(t, url)
	for i := range 100 {
		s, err := natstasks.Open(t.Context(), js)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Create(t.Context(), task.Record{ID: "x", Owner: "a", Status: task.Working, Retention: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		go s.Wait(t.Context(), "a", r.ID, r.Revision)
		time.Sleep(time.Duration(i) * 40 * time.Microsecond)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.Close()
		}()
		select {
		case <-closed:
		case <-time.After(2 * slack):
			t.Fatalf("it has not returned, try %d", i)
		}
	}
}
