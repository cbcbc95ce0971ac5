package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
)

// pipes is a network in memory, on which a server listens and to which a client connects.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "passthrough:///pipe" }

func (p pipes) dial(context.Context, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

// SPEC 3.1: a call without a sign of life ends with the documented message, and the messages of
// a stream are signs of life.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		network, begun := make(pipes), time.Now()
		if err := run(t.Context(), network, &out, grpc.WithContextDialer(network.dial)); err != nil {
			t.Fatal(err)
		}
		const want = `unary: DeadlineExceeded: No progress for 1s (idle timeout). Tool should call heartbeat() during long work.
stream: DeadlineExceeded after 3 messages: No progress for 1s (idle timeout). Tool should call heartbeat() during long work.
`
		if got := out.String(); got != want || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v, got\n%swant\n%s", time.Since(begun), got, want)
		}
	})
}
