package sdktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A ConnectConfig configures SDK.Connect. The client uses protocol Old.
type ConnectConfig struct {
	Limited bool // requests have a limit of 1 s, which the limit of each phase replaces
	Backoff request.Backoff
	Tools   func(names []string)
	Failed  func(error) bool
}

var errRefused = errors.New("refused")

// connecting calls Connect, and returns the scripts that open made, the time that Connect took, and its error. It calls
// open with the number of each try, beginning with 1.
func connecting(t *testing.T, ctx context.Context, sdk SDK, c ConnectConfig, open func(n int) (*Script, error)) (all []*Script, took time.Duration, err error) {
	t.Helper()
	defer func() { // also when Connect panics
		for _, sc := range all {
			sc.end()
		}
	}()
	begun := time.Now()
	n := 0
	end, err := sdk.Connect(ctx, c, func() (io.Reader, io.WriteCloser, error) {
		n++
		sc, err := open(n)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, sc)
		return sc.out, sc.in, nil
	})
	took = time.Since(begun)
	if err == nil {
		time.Sleep(time.Hour) // past the limits of the phases
		end()
	}
	return all, took, err
}

// connectTries tests SPEC 8.5, 8.7: Connect makes three more tries, after 2 s, 4 s and 8 s, each with a new transport.
// It then tries every 30 s as long as Failed returns true. The end of the caller's context ends it at any time.
func connectTries(t *testing.T, sdk SDK) {
	stop := errors.New("the user pressed Stop")
	once := request.Backoff{Retries: 1, First: s}
	for _, tc := range []struct {
		name    string
		backoff request.Backoff
		again   int           // how many times Failed returns true; -1 means that there is no Failed
		up      int           // the number of the try that succeeds; 0 means none
		mute    bool          // the server answers nothing
		end     time.Duration // when the caller's context ends; 0 means never
		want    []time.Duration
		err     string
	}{
		{name: "third", again: -1, up: 3, want: []time.Duration{0, 2 * s, 6 * s}},
		{name: "never", again: -1, want: []time.Duration{0, 2 * s, 6 * s, 14 * s}, err: "connecting: refused"},
		{name: "no retry", backoff: request.Backoff{Retries: -1}, again: -1, want: []time.Duration{0}, err: "connecting: refused"},
		{name: "the program gives up", backoff: once, again: 1, want: []time.Duration{0, s, 31 * s, 32 * s}, err: "connecting: refused"},
		{name: "it comes up", backoff: once, again: 99, up: 4, want: []time.Duration{0, s, 31 * s, 32 * s}},
		{name: "the context ends in a try", again: -1, mute: true, end: 3 * s, want: []time.Duration{0}},
		{name: "the context ends between tries", again: -1, end: 3 * s, want: []time.Duration{0, 2 * s}, err: "waiting to try again (connecting: refused): the user pressed Stop"},
		{name: "the context ends later", backoff: once, again: 99, end: 10 * s, want: []time.Duration{0, s}, err: "waiting to try again (connecting: refused): the user pressed Stop"},
	} {
		Bubble(t, tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.end > 0 {
				time.AfterFunc(tc.end, func() { cancel(stop) })
			}
			c := ConnectConfig{Backoff: tc.backoff}
			if tc.again >= 0 {
				c.Failed = func(err error) bool { tc.again--; return errors.Is(err, errRefused) && tc.again >= 0 }
			}
			var got []time.Duration
			begun := time.Now()
			_, _, err := connecting(t, ctx, sdk, c, func(n int) (*Script, error) {
				got = append(got, time.Since(begun))
				if n != tc.up && !tc.mute {
					return nil, errRefused
				}
				sc := &Script{mute: tc.mute}
				sc.serve(t, func(*Asked) {})
				return sc, nil
			})
			if tc.mute { // the SDKs differ in the phase that the error names
				if took := time.Since(begun); len(got) != 1 || took != tc.end || !errors.Is(err, stop) || !errors.Is(err, context.Canceled) {
					t.Errorf("%v after %v", err, took)
				}
				return
			}
			if d := cmp.Diff(tc.want, got); d != "" || (err == nil) != (tc.err == "") || err != nil && (err.Error() != tc.err || !errors.Is(err, errRefused) && !errors.Is(err, stop)) {
				t.Errorf("%v %s", err, d)
			}
		})
	}
}

// connectPhases tests SPEC 8.4, 8.5, 8.7: the handshake and each page of tools/list have a limit of their own. If one
// times out, the whole connection is tried again.
func connectPhases(t *testing.T, sdk SDK) {
	for _, tc := range []struct {
		name  string
		mute  bool            // no answer to initialize
		pages []time.Duration // how long the pages of the list take, in the first try and in the others
		tries int
		took  time.Duration
	}{
		{name: "no handshake", mute: true, tries: 4, took: 4*5*s + 14*s},
		{name: "in time", pages: []time.Duration{5*s - 1, 5*s - 1}, tries: 1, took: 3 * (5*s - 1)},
		{name: "too late once", pages: []time.Duration{5*s + 1, 4 * s}, tries: 2, took: 5*s + 2*s + 3*4*s},
		{name: "too late", pages: []time.Duration{5*s + 1, 5*s + 1}, tries: 4, took: 4*5*s + 14*s},
	} {
		for _, limited := range []bool{false, true} {
			if !limited && tc.mute {
				continue // without Limit, the SDKs divide the handshake into different phases
			}
			Bubble(t, fmt.Sprint(tc.name, " limited=", limited), func(t *testing.T) {
				var names []string
				all, took, err := connecting(t, t.Context(), sdk, ConnectConfig{Limited: limited, Tools: func(n []string) { names = n }}, func(n int) (*Script, error) {
					sc := &Script{mute: tc.mute}
					page := 0
					sc.serve(t, func(r *Asked) {
						if r.Method != "tools/list" {
							return
						}
						time.Sleep(tc.pages[min(n-1, 1)])
						if page++; page < 3 {
							r.answer(fmt.Sprintf(`{"tools":[{"name":"%d","inputSchema":{"type":"object"}}],"nextCursor":"next"}`, page))
						} else {
							r.answer(`{"tools":[{"name":"3","inputSchema":{"type":"object"}}]}`)
						}
					})
					return sc, nil
				})
				if over := took - tc.took; len(all) != tc.tries || over < 0 || over > time.Duration(tc.tries)*250*ms {
					t.Errorf("%d tries in %v, want %d in %v", len(all), took, tc.tries, tc.took)
				}
				if tc.tries == 4 {
					if err == nil || !strings.HasPrefix(err.Error(), "connecting: ") || sdk.Code(err) != request.CodeTimeout || names != nil {
						t.Errorf("%v, %v", err, names)
					}
				} else if d := cmp.Diff([]string{"1", "2", "3"}, names); err != nil || d != "" {
					t.Errorf("%v %s", err, d)
				}
			})
		}
	}
}

// Attacks returns functions that misbehave, for use in place of a caller's function, by name: they block until release
// is closed, panic, or call runtime.Goexit.
func Attacks(release <-chan struct{}) map[string]func() {
	return map[string]func(){
		"block":  func() { <-release },
		"panic":  func() { panic("the caller's code panics") },
		"goexit": runtime.Goexit,
	}
}

// connectOutlasts tests SPEC 3.24, 8.7: if a function of the caller does not return, Connect returns at the limit or
// the end of its context. If the function panics or ends its goroutine, Connect panics or returns an error. All that a
// watcher of the process sees of it are requests (SPEC 4.8).
func connectOutlasts(t *testing.T, sdk SDK) {
	for _, place := range []string{"open", "Tools", "Failed"} {
		for how := range Attacks(nil) {
			Bubble(t, place+" "+how, func(t *testing.T) {
				defer timeout.Watch(timeout.Hooks{Started: func(_ context.Context, e timeout.Snapshot) {
					if e.Tool == "" && e.Operation != timeout.OperationRequest { // others may run beside this test
						t.Errorf("a %v without a name", e.Operation)
					}
				}})()
				release := make(chan struct{})
				at := func(here string) {
					if here == place {
						Attacks(release)[how]()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				c := ConnectConfig{Backoff: request.Backoff{Retries: -1}, Tools: func([]string) { at("Tools") }}
				if place == "Failed" {
					c.Failed = func(error) bool { at("Failed"); return false }
				}
				var panicked any
				var took time.Duration
				var err error
				returned := make(chan bool)
				go func() {
					defer close(returned)
					defer func() { panicked = recover() }()
					_, took, err = connecting(t, ctx, sdk, c, func(int) (*Script, error) {
						if at("open"); place != "Tools" {
							return nil, errRefused
						}
						sc := new(Script)
						sc.serve(t, func(r *Asked) {
							if r.Method == "tools/list" {
								r.answer(`{"tools":[]}`)
							}
						})
						return sc, nil
					})
				}()
				<-returned
				want := 5*s + 250*ms
				if place == "Failed" {
					want = time.Hour + s
				}
				if took > want || how == "block" && took == 0 {
					t.Errorf("took %v", took)
				}
				if (panicked != nil) != (how == "panic") || err == nil && how != "panic" {
					t.Errorf("%v, panic of Connect: %v", err, panicked)
				}
				if how == "goexit" && place != "Failed" && !errors.Is(err, timeout.ErrGoexit) {
					t.Error(err)
				}
				close(release)
				synctest.Wait()
			})
		}
	}
}
