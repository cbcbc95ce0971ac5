package request_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// SPEC 8.3: the caller's own token comes back to its handler, in the form in which JSON
// has it, and also when the request has ended long ago.
func TestOwnToken(t *testing.T) {
	type back struct {
		Token  any
		Wanted bool
	}
	for _, test := range []struct {
		name string
		own  any
		want back
	}{
		{"none", nil, back{nil, false}},
		{"string", "abc", back{"abc", true}},
		{"empty", "", back{"", true}},
		{"odd string", "-j\x00\"ß-s", back{"-j\x00\"ß-s", true}},
		{"int", 7, back{7.0, true}},
		{"zero", int32(0), back{0.0, true}},
		{"negative", int64(-7), back{-7.0, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := request.New(only(request.Limits{Timeout: time.Minute, ResetOnProgress: true}))
			var token string
			check := func(when string) {
				own, wanted := c.Progress("session", token)
				if d := cmp.Diff(test.want, back{own, wanted}); d != "" {
					t.Errorf("%s: %s", when, d)
				}
			}
			_, err := request.Do(t.Context(), c, request.Call{Session: "session", Method: "m", Token: test.own}, func(_ context.Context, tok string) (int, error) {
				token = tok
				check("during")
				return 0, nil
			})
			if err != nil || token == "" {
				t.Fatalf("%q, %v", token, err)
			}
			check("after")
		})
	}
}

// A token is put in only where progress renews something.
func TestTokenOnlyForReset(t *testing.T) {
	for _, limits := range []request.Limits{{Timeout: time.Minute}, {MaxTotal: time.Minute, ResetOnProgress: true}, {ResetOnProgress: true}} {
		c := request.New(only(limits))
		_, _ = request.Do(t.Context(), c, request.Call{Method: "m", Token: "own"}, func(_ context.Context, token string) (int, error) {
			if token != "" || c.Waiting() != 0 {
				t.Errorf("%+v: token %q, %d registered", limits, token, c.Waiting())
			}
			return 0, nil
		})
	}
	c := request.New(only(request.Limits{Timeout: time.Minute, ResetOnProgress: true}))
	_, _ = request.Do(t.Context(), c, request.Call{Method: "m", Token: func() {}}, func(_ context.Context, token string) (int, error) {
		if token != "" || c.Waiting() != 0 {
			t.Errorf("a token that is none: %q, %d registered", token, c.Waiting())
		}
		return 0, nil
	})
}

// A token that is not ours is given back as it is and renews nothing, nor does what
// another session sends.
func TestForeignProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := request.New(only(request.Limits{Timeout: time.Second, ResetOnProgress: true}))
		other := request.New(only(request.Limits{Timeout: time.Second, ResetOnProgress: true}))
		_, err := request.Do(t.Context(), c, request.Call{Session: 1, Method: "m"}, func(ctx context.Context, token string) (int, error) {
			time.Sleep(900 * ms)
			c.Progress(2, token)
			other.Progress(1, token)
			for _, foreign := range []any{nil, 7.0, "", "abc", "td-", token + "0", strings.ToLower(token)} {
				if own, wanted := c.Progress(1, foreign); !strings.HasPrefix(fmt.Sprint(foreign), token) && (own != foreign || !wanted) {
					t.Errorf("%v became %v, %v", foreign, own, wanted)
				}
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if e := stopped(t, err); e.Stop.Elapsed != time.Second || e.Stop.Beats != 0 {
			t.Errorf("%v after %v with %d beats", err, e.Stop.Elapsed, e.Stop.Beats)
		}
	})
}
