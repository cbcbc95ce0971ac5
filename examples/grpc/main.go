// Grpc shows how to run the methods of a gRPC server under an idle limit and a total: an interceptor
// for unary calls and one for streams, in interceptors.go. Copy them.
//
// The messages that a stream sends and receives are heartbeats. A call stopped by a limit has the code
// DeadlineExceeded; a call cancelled by its client has Canceled.
//
// Deadlines propagate: the deadline of a client's context limits the execution of the method, and the end of that
// execution's total is the deadline of the calls that the method makes.
//
// The program runs a server that gets stuck and a client that gets the error.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A service is stuck in its unary method, and after three messages in its stream.
type service struct {
	health.UnimplementedHealthServer
}

func (service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (service) Watch(_ *health.HealthCheckRequest, stream health.Health_WatchServer) error {
	for range 3 {
		if err := stream.Send(&health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = run(context.Background(), listener, stdio.New(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(stdio.New(os.Stderr), "grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listener net.Listener, out io.Writer, opts ...grpc.DialOption) error {
	config := timeout.Config{Total: time.Hour, Idle: time.Second}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(Unary(config)),
		grpc.ChainStreamInterceptor(Stream(config)),
	)
	health.RegisterHealthServer(server, service{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	err := ask(ctx, listener.Addr().String(), out, opts...)
	server.Stop()
	return errors.Join(err, <-served)
}

func ask(ctx context.Context, address string, out io.Writer, opts ...grpc.DialOption) error {
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := health.NewHealthClient(conn)

	_, err = client.Check(ctx, &health.HealthCheckRequest{})
	_, full := fmt.Fprintf(out, "unary: %v: %s\n", status.Code(err), status.Convert(err).Message())

	stream, err := client.Watch(ctx, &health.HealthCheckRequest{})
	messages := 0
	for ; err == nil; messages++ {
		if _, err = stream.Recv(); err != nil {
			break
		}
	}
	_, err = fmt.Fprintf(out, "stream: %v after %d messages: %s\n", status.Code(err), messages, status.Convert(err).Message())
	return cmp.Or(full, err)
}
