package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tooldeadline/tooldeadline/timeout"
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

// A full is a disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := make(pipes)
		if err := run(t.Context(), network, full{}, grpc.WithContextDialer(network.dial)); !errors.Is(err, errFull) {
			t.Error(err)
		}
	})
}

// A patient server says how much is left to it, and never answers.
type patient struct {
	health.UnimplementedHealthServer
	left chan time.Duration
}

func (p patient) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	left, _ := timeout.Remaining(ctx)
	p.left <- left
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// SPEC 18.6: the deadline of the client's context is the total of the method's execution, and the total of the execution in
// which the client calls is the deadline of the call. Each only shortens.
func TestDeadline(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name                    string
		deadline, client, total time.Duration // of the context; totals of the execution on the client, and on the server
		want                    time.Duration
	}{
		{"the client's deadline", 5 * s, 0, time.Hour, 5 * s},
		{"the client's total", 0, 6 * s, time.Hour, 6 * s},
		{"the server's total", 5 * s, 6 * s, 4 * s, 4 * s},
		{"no limit on the server", 5 * s, 6 * s, 0, 5 * s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, service := make(pipes), patient{left: make(chan time.Duration, 1)}
				server := grpc.NewServer(grpc.ChainUnaryInterceptor(Unary(timeout.Config{Total: tc.total})))
				health.RegisterHealthServer(server, service)
				go func() { _ = server.Serve(network) }()
				defer server.Stop()
				conn, err := grpc.NewClient(network.Addr().String(), grpc.WithContextDialer(network.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()

				begun := time.Now()
				err = timeout.Run(t.Context(), func(ctx context.Context) error {
					if tc.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tc.deadline)
						defer cancel()
					}
					_, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{})
					return err
				}, timeout.Config{Total: tc.client})
				left, took := <-service.left, time.Since(begun)
				if left != tc.want || took != tc.want {
					t.Errorf("%v was left, and the call took %v, want %v", left, took, tc.want)
				}
				if timeout.ExitCode(err) != 124 && status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("%v is no timeout", err)
				}
			})
		})
	}
}
