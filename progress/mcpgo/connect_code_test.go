package mcpgo_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// attacks are what code of the caller's does instead of what it should. A place that blocks does so until release is
// closed.
func attacks(release <-chan struct{}) map[string]func() {
	return map[string]func(){
		"block":  func() { <-release },
		"panic":  func() { panic("the caller's code panics") },
		"goexit": runtime.Goexit,
	}
}

// A hooked transport calls functions of the test.
type hooked struct {
	transport.Interface
	start  func() error
	close  func()
	closed *int
}

func (h hooked) Start(ctx context.Context) error {
	if err := h.start(); err != nil {
		return err
	}
	return h.Interface.Start(ctx)
}

func (h hooked) Close() error { *h.closed++; h.close(); return h.Interface.Close() }

// SPEC 3.24, 8.7: a function of the caller's that does not return holds Connect no longer than its limit and its context,
// and one that panics or ends its goroutine does so to nobody else. A client that comes too late is closed.
func TestConnectOutlastsCode(t *testing.T) {
	for _, place := range []string{"open", "Start", "Tools", "Failed", "Close"} {
		for how := range attacks(nil) {
			t.Run(place+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					at := func(here string) {
						if here == place {
							attacks(release)[how]()
						}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					refused := errors.New("refused")
					opts := &mcpgo.ConnectOptions{Timeout: time.Second, Backoff: request.Backoff{Retries: -1}}
					opts.Tools = func([]mcp.Tool) { at("Tools") }
					if place == "Failed" {
						opts.Failed = func(error) bool { at("Failed"); return false }
					}
					opened, closed := 0, 0
					begun := time.Now()
					var err error
					var c *client.Client
					returned := make(chan any)
					go func() {
						var panicked any
						defer func() { returned <- panicked }()
						defer func() { panicked = recover() }()
						c, _, err = mcpgo.Connect(ctx, func() (*client.Client, error) {
							at("open")
							if place == "Failed" {
								return nil, refused
							}
							opened++
							start := func() error { at("Start"); return nil }
							if place == "Close" {
								start = func() error { <-release; return refused }
							}
							s := transport.NewInProcessTransport(server.NewMCPServer("test", "1"))
							return client.NewClient(hooked{s, start, func() { at("Close") }, &closed}), nil
						}, hello, opts)
					}()
					panicked, took := <-returned, time.Since(begun)
					want := map[string]time.Duration{"Close": 21*time.Second + 250*time.Millisecond, "Failed": time.Hour + time.Second}[place]
					if want == 0 {
						want = time.Second + 250*time.Millisecond
					}
					if took > want || took == 0 && how == "block" {
						t.Errorf("Connect took %v, want at most %v", took, want)
					}
					if c != nil || how == "block" && timeout.ExitCode(err) != 124 && place != "Failed" || place == "Failed" && how == "block" && !errors.Is(err, refused) {
						t.Errorf("%v, %v", c, err)
					}
					if is := panicked != nil; is != (how == "panic" && place != "Close") {
						t.Errorf("panic of Connect: %v", panicked)
					}
					if how == "goexit" && place != "Failed" && place != "Close" && !errors.Is(err, timeout.ErrGoexit) {
						t.Error(err)
					}
					close(release)
					synctest.Wait()
					if opened != closed {
						t.Errorf("%d clients opened, %d closed", opened, closed)
					}
				})
			})
		}
	}
}
