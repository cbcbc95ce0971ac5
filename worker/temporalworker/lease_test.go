package temporalworker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

type record = func(context.Context, ...any)

// SPEC 13.1: a timer keeps the service's lease, and not the activity.
func TestRenewals(t *testing.T) {
	seconds := func(all ...int) (want []sent) {
		for _, s := range all {
			want = append(want, sent{At: time.Duration(s) * time.Second})
		}
		return want
	}
	for _, tt := range []struct {
		name  string
		info  activity.Info
		idle  time.Duration
		work  time.Duration
		want  []sent
		stuck bool
	}{
		{"until it returns", activity.Info{HeartbeatTimeout: 6 * time.Second}, time.Hour, 9 * time.Second, seconds(2, 4, 6, 8), false},
		{"until it is stopped", activity.Info{HeartbeatTimeout: 6 * time.Second}, 5 * time.Second, time.Hour, seconds(2, 4), true},
		{"every 10 s of a long timeout", activity.Info{HeartbeatTimeout: time.Hour}, 0, 25 * time.Second, seconds(10, 20), false},
		{"every 10 s where there is none", activity.Info{}, 0, 25 * time.Second, seconds(10, 20), false},
		{"not of a local activity", activity.Info{IsLocalActivity: true}, 0, 25 * time.Second, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: tt.info}
				_, err := a.run(func(ctx context.Context, _ record) (any, error) {
					select {
					case <-time.After(tt.work):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}, temporalworker.WithOptions(timeout.Config{Idle: tt.idle}))
				if (err != nil) != tt.stuck {
					t.Error(err)
				}
				time.Sleep(time.Hour) // nothing after the end
				if diff := cmp.Diff(tt.want, a.heartbeats()); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The grace is covered too: or the service would have the next attempt run beside it.
func TestRenewalsInTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		_, err := a.run(func(ctx context.Context, _ record) (any, error) {
			<-ctx.Done()
			time.Sleep(2500 * time.Millisecond) // cleans up
			return nil, ctx.Err()
		})
		if o, _ := temporalworker.OutcomeOf(err); o.Kind != "idle" || o.Abandoned {
			t.Error(err)
		}
		if n := len(a.heartbeats()); n != 5 {
			t.Errorf("%d heartbeats in 5.5 s", n)
		}
	})
}

// SPEC 13.1: the newest details are kept for the next attempt. An attempt ends by the idle limit.
func TestDetails(t *testing.T) {
	type do func(ctx context.Context, record record)
	silent := func(context.Context, record) {}
	for _, tt := range []struct {
		name     string
		earlier  []any
		attempts []do
		want     string // what the last attempt leaves
	}{
		{"none", nil, []do{silent, silent}, ""},
		{"recorded", nil, []do{func(ctx context.Context, r record) { r(ctx, 1); r(ctx, 2) }}, "2"},
		{"two values", nil, []do{func(ctx context.Context, r record) { r(ctx, "a", 2) }, silent, silent}, `"a" 2`},
		{"nine values", []any{1, 2, 3, 4, 5, 6, 7, 8, 9}, []do{silent}, "1 2 3 4 5 6 7 8 9"},
		{"four values", []any{1, 2, 3, 4}, []do{silent}, "1 2 3 4"},
		{"of the attempt before", []any{7}, []do{silent, silent}, "7"},
		{"replaced by a later attempt", []any{7}, []do{silent, func(ctx context.Context, r record) { r(ctx, 8) }}, "8"},
		{"kept by a heartbeat without", []any{7}, []do{func(ctx context.Context, r record) { r(ctx) }}, "7"},
		{"kept by a heartbeat with nil", nil, []do{func(ctx context.Context, r record) { r(ctx, 7); r(ctx, nil) }}, "7"},
		{"of a beat", nil, []do{func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") }}, `"half"`},
		{"of a beat, kept", nil, []do{func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") }, silent, silent}, `"half"`},
		{"of a beat, replaced by one", nil, []do{
			func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") },
			func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "all") }}, `"all"`},
		{"of a beat, replaced by recorded ones", nil, []do{func(ctx context.Context, r record) { heartbeat.BeatWith(ctx, "half"); r(ctx, 1) }}, "1"},
		{"recorded, and a beat later", nil, []do{func(ctx context.Context, r record) { r(ctx, 1); heartbeat.BeatWith(ctx, "half") }}, "1"},
		{"recorded, and a beat in the next attempt", nil, []do{
			func(ctx context.Context, r record) { r(ctx, 1) },
			func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") }}, "1"},
		{"progress", nil, []do{func(ctx context.Context, _ record) {
			progress.Report(ctx, progress.Update{Progress: 37, Total: 100, Message: "file"})
		}}, asJSON(progress.Update{Progress: 37, Total: 100, Message: "file"})},
		{"a beat that cannot be encoded", nil, []do{func(ctx context.Context, r record) {
			heartbeat.BeatWith(ctx, "half")
			time.Sleep(2 * time.Second)
			heartbeat.BeatWith(ctx, make(chan int))
		}}, ""},
		{"of an execution within", nil, []do{func(ctx context.Context, r record) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				r(ctx, 1)
				return nil
			}, timeout.Config{Idle: time.Second})
		}}, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
				if tt.earlier != nil {
					a.Earlier = payloads(t, tt.earlier...)
				}
				for i, do := range tt.attempts {
					if i > 0 {
						a = a.next()
					}
					_, err := a.run(func(ctx context.Context, r record) (any, error) {
						do(ctx, r)
						<-ctx.Done()
						return nil, ctx.Err()
					})
					if o, _ := temporalworker.OutcomeOf(err); o.Kind != "idle" {
						t.Fatal(err)
					}
				}
				all := a.heartbeats()
				if got := all[len(all)-1].Details; got != tt.want {
					t.Errorf("left %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A beat's detail reaches the service also if the activity fails before the next renewal: the
// SDK sends only what it was given.
func TestDetailBeforeAnError(t *testing.T) {
	half := func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") }
	for _, tt := range []struct {
		name string
		do   func(context.Context, record)
		err  error
		want []sent
	}{
		{"it fails", half, errDisk, []sent{{0, `"half"`}}},
		{"it succeeds", half, nil, nil},
		{"it has details of its own, which the SDK has", func(ctx context.Context, r record) { r(ctx, 1); half(ctx, r) }, errDisk, []sent{{0, "1"}}},
		{"no detail", func(ctx context.Context, _ record) { heartbeat.Beat(ctx) }, errDisk, nil},
		{"somebody else goes on, and records now", half, activity.ErrResultPending, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Minute}}
				_, err := a.run(func(ctx context.Context, r record) (any, error) {
					tt.do(ctx, r)
					return nil, tt.err
				})
				if diff := cmp.Diff(tt.want, a.heartbeats()); err != tt.err || diff != "" {
					t.Errorf("%v: heartbeats (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}

// An activity may change details that it has recorded, as the SDK has encoded them by then.
func TestDetailsMayChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		_, err := a.run(func(ctx context.Context, record record) (any, error) {
			done := map[string]int{"files": 1}
			record(ctx, done)
			for range 2500 { // the race detector looks on
				done["files"]++
				time.Sleep(time.Millisecond)
			}
			return nil, errors.New("disk full")
		})
		if err == nil || timeout.ExitCode(err) != 1 {
			t.Error(err)
		}
		want := []sent{{0, `{"files":1}`}, {time.Second, `{"files":1}`}, {2 * time.Second, `{"files":1}`}}
		if diff := cmp.Diff(want, a.heartbeats()); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

// The context of a call may end before the SDK uses it.
func TestHeartbeatsHaveTheAttemptsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		out := &contexts{service: service{a: a}}
		in := temporalworker.Interceptor().InterceptActivity(context.Background(), &inner{a: a, f: func(ctx context.Context, record record) (any, error) {
			c, cancel := context.WithCancel(ctx)
			record(c, 1)
			cancel()
			time.Sleep(1500 * time.Millisecond)
			return nil, nil
		}})
		if err := in.Init(out); err != nil {
			t.Fatal(err)
		}
		type key struct{}
		ctx := context.WithValue(context.Background(), key{}, 1)
		if _, err := in.ExecuteActivity(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for i, c := range out.all {
			if c != ctx {
				t.Errorf("heartbeat %d was sent with another context", i)
			}
		}
		if len(out.all) != 2 {
			t.Errorf("%d heartbeats", len(out.all))
		}
	})
}

type contexts struct {
	service
	all []context.Context
}

func (c *contexts) RecordHeartbeat(ctx context.Context, _ ...any) { c.all = append(c.all, ctx) }

// Details that cannot be encoded panic in the activity, as without the interceptor, and what was
// recorded before stays.
func TestUnencodableDetails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		panics := 0
		_, err := a.run(func(ctx context.Context, record record) (any, error) {
			record(ctx, 1)
			func() {
				defer func() {
					if recover() != nil {
						panics++
					}
				}()
				record(ctx, make(chan int))
			}()
			time.Sleep(1500 * time.Millisecond)
			return nil, nil
		})
		if err != nil || panics != 1 {
			t.Errorf("%d panics, %v", panics, err)
		}
		if diff := cmp.Diff([]sent{{0, "1"}, {time.Second, "1"}}, a.heartbeats()); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

// A codec that panics on a goroutine of ours ends nothing, and is tried again.
func TestCodecPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		n := 0
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}, Send: func([]any) {
			if n++; n == 1 {
				panic("no key")
			}
		}}
		if _, err := a.run(func(ctx context.Context, _ record) (any, error) {
			time.Sleep(2500 * time.Millisecond)
			return nil, nil
		}, temporalworker.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the log has more, of a timer's goroutine
		if n != 2 || !strings.Contains(log.String(), `"no key"`) {
			t.Errorf("%d heartbeats; %s", n, &log)
		}
	})
}

// Nor does a detail of a library whose method panics, and the lease is kept all the same.
func TestDetailPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		_, err := a.run(func(ctx context.Context, _ record) (any, error) {
			heartbeat.BeatWith(ctx, explosive{})
			time.Sleep(2500 * time.Millisecond)
			return nil, nil
		})
		if diff := cmp.Diff([]sent{{At: time.Second}, {At: 2 * time.Second}}, a.heartbeats()); err != nil || diff != "" {
			t.Errorf("%v: heartbeats (-want +got):\n%s", err, diff)
		}
	})
}

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }

// SPEC 3.24: nor does a log handler that panics, blocks, or ends its goroutine.
func TestLoggerAttacks(t *testing.T) {
	for how := range map[string]bool{"panic": true, "block": true, "goexit": true} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
				begun := time.Now()
				_, err := a.run(func(ctx context.Context, _ record) (any, error) {
					heartbeat.BeatWith(ctx, make(chan int))
					time.Sleep(1500 * time.Millisecond)
					<-ctx.Done()
					return make(chan int), nil
				}, temporalworker.WithLogger(slog.New(badHandler{how: how, release: release})))
				if o, _ := temporalworker.OutcomeOf(err); o.Kind != "idle" || len(a.heartbeats()) < 2 {
					t.Errorf("%v, %d heartbeats", err, len(a.heartbeats()))
				}
				if took := time.Since(begun); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				close(release)
				time.Sleep(time.Minute)
			})
		})
	}
}

type badHandler struct {
	slog.Handler
	how     string
	release chan struct{}
}

func (badHandler) Enabled(context.Context, slog.Level) bool { return true }

func (b badHandler) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "the ") { // of the engine, whose tests have it
		return nil
	}
	switch b.how {
	case "block":
		<-b.release
	case "goexit":
		runtime.Goexit()
	}
	panic("disk full")
}

// Details that only the client's own converter can encode are sent as the activity records them.
// They can be sent again if we are given the converter. If not, nothing else is sent in their
// place, which would erase them.
func TestDataConverter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type box struct{ C chan int }
		own := converter.NewCompositeDataConverter(boxConverter{}, converter.NewJSONPayloadConverter())
		for _, tt := range []struct {
			opts []temporalworker.Option
			want int
		}{{nil, 1}, {[]temporalworker.Option{temporalworker.WithDataConverter(nil)}, 1}, {[]temporalworker.Option{temporalworker.WithDataConverter(own)}, 3}} {
			a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
			n := 0
			out := &counting{service{a: a}, &n}
			in := temporalworker.Interceptor(tt.opts...).InterceptActivity(context.Background(), &inner{a: a, f: func(ctx context.Context, record record) (any, error) {
				record(ctx, box{make(chan int)})
				time.Sleep(2500 * time.Millisecond)
				return nil, nil
			}})
			if err := in.Init(out); err != nil {
				t.Fatal(err)
			}
			if _, err := in.ExecuteActivity(context.Background(), nil); err != nil || n != tt.want {
				t.Errorf("%d heartbeats, want %d; %v", n, tt.want, err)
			}
		}
	})
}

type counting struct {
	service
	n *int
}

func (c *counting) RecordHeartbeat(context.Context, ...any) { *c.n++ }

// boxConverter takes what JSON cannot have.
type boxConverter struct{}

func (boxConverter) ToPayload(v any) (*commonpb.Payload, error) {
	if _, err := converter.NewJSONPayloadConverter().ToPayload(v); err == nil {
		return nil, nil // somebody else's
	}
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("box")}, Data: []byte(fmt.Sprintf("%T", v))}, nil
}
func (boxConverter) FromPayload(*commonpb.Payload, any) error { return nil }
func (boxConverter) ToString(p *commonpb.Payload) string      { return string(p.Data) }
func (boxConverter) Encoding() string                         { return "box" }

// Earlier details that cannot be read are not erased by a silent activity.
func TestUnreadableDetails(t *testing.T) {
	for name, unread := range map[string]error{"an error": errors.New("no key"), "a converter that does not know RawValue": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log bytes.Buffer
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
				out := &unreadable{service{a: a}, unread}
				i := temporalworker.Interceptor(temporalworker.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				in := i.InterceptActivity(context.Background(), &inner{a: a, f: func(ctx context.Context, record record) (any, error) {
					time.Sleep(2500 * time.Millisecond)
					record(ctx, 5)
					time.Sleep(time.Second)
					return nil, nil
				}})
				if err := in.Init(out); err != nil {
					t.Fatal(err)
				}
				a.start = time.Now()
				if _, err := in.ExecuteActivity(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
				want := []sent{{2500 * time.Millisecond, "5"}, {3 * time.Second, "5"}}
				if diff := cmp.Diff(want, a.heartbeats()); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
				synctest.Wait() // the log has more, of a timer's goroutine
				if n := strings.Count(log.String(), "cannot be kept"); n != 1 {
					t.Errorf("%d lines:\n%s", n, &log)
				}
			})
		})
	}
}

type unreadable struct {
	service
	err error
}

func (*unreadable) HasHeartbeatDetails(context.Context) bool            { return true }
func (u *unreadable) GetHeartbeatDetails(context.Context, ...any) error { return u.err }

// A detail of a library is not taken for the checkpoint of an activity, whose type it has not.
// The next attempt of an activity that wants it can read it.
func TestHasHeartbeatDetails(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(context.Context, record)
		has  bool
		want string
	}{
		{"none", func(context.Context, record) {}, false, ""},
		{"recorded", func(ctx context.Context, r record) { r(ctx, "half") }, true, "half"},
		{"of a beat", func(ctx context.Context, _ record) { heartbeat.BeatWith(ctx, "half") }, false, "half"},
		{"of both", func(ctx context.Context, r record) { r(ctx, "half"); heartbeat.BeatWith(ctx, "all") }, true, "half"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
				_, _ = a.run(func(ctx context.Context, r record) (any, error) {
					tt.do(ctx, r)
					return nil, errDisk
				})
				a = a.next()
				i := &inner{a: a}
				i.f = func(ctx context.Context, _ record) (any, error) {
					var got string
					err := i.out.GetHeartbeatDetails(ctx, &got)
					if has := i.out.HasHeartbeatDetails(ctx); has != tt.has || got != tt.want || err != nil {
						t.Errorf("has %v, got %q, %v", has, got, err)
					}
					return nil, nil
				}
				in := temporalworker.Interceptor().InterceptActivity(context.Background(), i)
				if err := in.Init(&service{a: a}); err != nil {
					t.Fatal(err)
				}
				if _, err := in.ExecuteActivity(context.Background(), nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
	a := &attempt{}
	in := &inner{a: a}
	i := temporalworker.Interceptor().InterceptActivity(context.Background(), in)
	if err := i.Init(&unreadable{service{a: a}, errDisk}); err != nil {
		t.Fatal(err)
	}
	if !in.out.HasHeartbeatDetails(context.Background()) {
		t.Error("details that cannot be read are gone")
	}
}

// A renewal that waits for its turn when the activity ends is not sent: that would be after the
// end, about the next attempt's lease.
func TestRenewalWaitsAtTheEnd(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
			a.Send = func([]any) {
				if time.Since(a.start) < time.Second {
					time.Sleep(500 * time.Millisecond)
				}
			}
			_, err := a.run(func(ctx context.Context, record record) (any, error) {
				time.Sleep(900 * time.Millisecond)
				go record(ctx) // until 1.4 s
				time.Sleep(50 * time.Millisecond)
				heartbeat.BeatWith(ctx, "half")
				return nil, errDisk
			})
			time.Sleep(time.Hour)
			want := []sent{{1400 * time.Millisecond, ""}, {1400 * time.Millisecond, `"half"`}}
			if diff := cmp.Diff(want, a.heartbeats()); err != errDisk || diff != "" {
				t.Fatalf("%v: heartbeats (-want +got):\n%s", err, diff)
			}
		})
	}
}

// An activity that cannot get through to the service is not silent.
func TestBlockedHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		a.Send = func([]any) { time.Sleep(10 * time.Second) }
		if _, err := a.run(func(ctx context.Context, record record) (any, error) {
			record(ctx, 1)
			return nil, ctx.Err()
		}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // a renewal has been waiting for its turn
	})
}

// Nor does one that never gets through keep the outcome back.
func TestHangingHeartbeat(t *testing.T) {
	for _, who := range []string{"activity", "renewal", "end"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				hang := make(chan struct{})
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}, Send: func([]any) { <-hang }}
				_, err := a.run(func(ctx context.Context, record record) (any, error) {
					switch who {
					case "activity":
						record(ctx, 1)
					case "end":
						heartbeat.BeatWith(ctx, 1)
						return nil, errors.New("disk full")
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}, temporalworker.WithOptions(timeout.Config{Total: 4 * time.Second}))
				if took := time.Since(a.start); err == nil || took > (4+7+1)*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				close(hang)
				synctest.Wait()
				time.Sleep(time.Hour)
			})
		})
	}
}

// An abandoned activity goes on, and its next attempt runs by now.
func TestAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}}
		late := make(chan struct{})
		_, err := a.run(func(ctx context.Context, record record) (any, error) {
			time.Sleep(time.Minute)
			record(ctx, 1)
			close(late)
			return "all", nil
		}, temporalworker.WithOptions(timeout.Config{Grace: time.Second}))
		o, ok := temporalworker.OutcomeOf(err)
		if took := time.Since(a.start); !ok || !o.Abandoned || took != 4*time.Second {
			t.Errorf("after %v: %v, %+v", took, err, o)
		}
		before := len(a.heartbeats())
		<-late
		if n := len(a.heartbeats()); n != before {
			t.Errorf("%d heartbeats after the end", n-before)
		}
	})
}

// SPEC 13.1: the SDK sends a session's heartbeats where no interceptor sees them.
func TestSessionsAreExempt(t *testing.T) {
	for _, name := range []string{"internalSessionCreationActivity", "internalSessionCompletionActivity"} {
		bubble(t, func(t *testing.T) {
			a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second, ActivityType: activity.Type{Name: name}}}
			if _, err := a.run(func(ctx context.Context, record record) (any, error) {
				time.Sleep(time.Minute)
				record(ctx, 1) // passes through
				return nil, ctx.Err()
			}, temporalworker.WithOptions(timeout.Config{Idle: time.Second})); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]sent{{time.Minute, "1"}}, a.heartbeats()); diff != "" {
				t.Errorf("heartbeats (-want +got):\n%s", diff)
			}
		})
	}
}
