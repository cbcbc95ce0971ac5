package sdktest

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

// streams tests SPEC 9.1, 9.4: a client closes and reopens an idle stream of notifications, while calls go on, and
// receives each notification once. With a KeepAlive the stream stays open. The end of the stream with its session is
// not reported as a loss.
func streams(t *testing.T, sdk SDK) {
	for name, every := range map[string]time.Duration{"quiet": -1, "kept alive": 20 * s} {
		Bubble(t, name, func(t *testing.T) {
			srv := sdk.NewServer(Config{Tools: map[string]Tool{"slow": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
				return Text("done"), Sleep(ctx, 25*s)
			}}}})
			h := stream.KeepAlive(srv.HTTP(false), every)
			var opened, now, lost atomic.Int32
			web := NewNet(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					opened.Add(1)
					now.Add(1)
					defer now.Add(-1)
				}
				h.ServeHTTP(w, r)
			}))
			hc := web.Client()
			base := hc.Transport
			hc.Transport = &stream.Notifications{Base: base, Idle: time.Minute, Report: func(_ context.Context, o *stream.OutageError) {
				if o.Attempts == 0 {
					lost.Add(1)
				}
			}}
			heard := make(chan float64, 99)
			c := sdk.NewClient(ClientConfig{Version: Old, OnTold: func(v float64) { heard <- v }})
			if err := c.ConnectHTTP(context.Background(), "http://localhost/", hc); err != nil {
				t.Fatal(err)
			}
			for value := range 5 {
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				srv.Tell(float64(value))
				if res, err := c.Call(t.Context(), "slow", nil, nil); err != nil || res.Texts[0] != "done" {
					t.Errorf("%v, %v", res, err)
				}
			}
			if quiet := every < 0; quiet != (opened.Load() > 20) || quiet != (lost.Load() > 20) || now.Load() != 1 {
				t.Errorf("%d streams opened, %d open, lost %d times", opened.Load(), now.Load(), lost.Load())
			}
			var got []float64
			for len(heard) > 0 {
				got = append(got, <-heard)
			}
			if !slices.Equal(got, []float64{0, 1, 2, 3, 4}) {
				t.Errorf("heard %v, want each once", got)
			}
			before := lost.Load()
			c.Close()
			synctest.Wait()
			if lost.Load() != before || now.Load() != 0 {
				t.Errorf("%d streams open after the end, lost %d times by it", now.Load(), lost.Load()-before)
			}
			srv.Close()
			web.End()
			base.(*http.Transport).CloseIdleConnections()
			time.Sleep(time.Hour)
		})
	}
}
