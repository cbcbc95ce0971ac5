package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// attacks are what code of the caller's does instead of what it should. A place that blocks does so until release is closed.
func attacks(release <-chan struct{}) map[string]func() {
	return map[string]func(){
		"block":  func() { <-release },
		"panic":  func() { panic("the caller's code panics") },
		"goexit": runtime.Goexit,
	}
}

// SPEC 3.24, 8.7: a function of the caller's that does not return holds Connect no longer than its limit and its context,
// and one that panics or ends its goroutine does so to nobody else.
func TestConnectOutlastsCode(t *testing.T) {
	for _, place := range []string{"transport", "Connect", "Tools", "Failed", "Close"} {
		for how := range attacks(nil) {
			if place == "Close" && how != "block" {
				continue // the SDK calls it, too, on a goroutine of its own
			}
			t.Run(place+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					defer close(release)
					at := func(here string) {
						if here == place {
							attacks(release)[how]()
						}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					refused := errors.New("refused")
					opts := &mcpsdk.ConnectOptions{Timeout: time.Second, Backoff: request.Backoff{Retries: -1}}
					opts.Tools = func([]*mcp.Tool) { at("Tools") }
					if place == "Failed" {
						opts.Failed = func(error) bool { at("Failed"); return false }
					}
					inner := inMemoryTo(t, newTestServer())
					begun := time.Now()
					var err error
					var cs *mcp.ClientSession
					returned := make(chan any)
					go func() {
						var panicked any
						defer func() { returned <- panicked }()
						defer func() { panicked = recover() }()
						cs, err = mcpsdk.Connect(ctx, newTestClient(nil), func() (mcp.Transport, error) {
							at("transport")
							if place == "Failed" {
								return nil, refused
							}
							return connector(func(ctx context.Context) (mcp.Connection, error) {
								at("Connect")
								if place == "Close" {
									return hostile{func() { at("Close") }, release}, nil
								}
								t, err := inner()
								if err != nil {
									return nil, err
								}
								return t.Connect(ctx)
							}), nil
						}, opts)
					}()
					panicked, took := <-returned, time.Since(begun)
					want := map[string]time.Duration{"Connect": 21 * time.Second, "Close": 21 * time.Second, "Failed": time.Hour + time.Second}[place]
					if want == 0 {
						want = time.Second
					}
					if took > want || took == 0 && how == "block" {
						t.Errorf("Connect took %v, want at most %v", took, want)
					}
					if cs != nil || how == "block" && timeout.ExitCode(err) != 124 && place != "Failed" || place == "Failed" && how == "block" && !errors.Is(err, refused) {
						t.Errorf("%v, %v", cs, err)
					}
					if is := panicked != nil; is != (how == "panic") {
						t.Errorf("panic of Connect: %v", panicked)
					}
					if how == "goexit" && place != "Failed" && !errors.Is(err, timeout.ErrGoexit) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A hostile connection never answers.
type hostile struct {
	close   func()
	release <-chan struct{}
}

func (hostile) SessionID() string                            { return "" }
func (h hostile) Close() error                               { h.close(); return nil }
func (hostile) Write(context.Context, jsonrpc.Message) error { return nil }
func (h hostile) Read(context.Context) (jsonrpc.Message, error) {
	<-h.release
	return nil, io.EOF
}
