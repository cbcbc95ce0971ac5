package grpc_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	limits "github.com/tooldeadline/tooldeadline/examples/grpc"
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

func Example() {
	config := timeout.Config{Total: time.Hour, Idle: 500 * time.Millisecond}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limits.Unary(config)),
		grpc.ChainStreamInterceptor(limits.Stream(config)),
	)
	health.RegisterHealthServer(server, service{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	client := health.NewHealthClient(conn)

	_, err = client.Check(context.Background(), &health.HealthCheckRequest{})
	fmt.Println("unary:", status.Code(err), status.Convert(err).Message())

	stream, err := client.Watch(context.Background(), &health.HealthCheckRequest{})
	for messages := 0; err == nil; messages++ {
		if _, err = stream.Recv(); err != nil {
			fmt.Println("stream:", messages, "messages,", status.Code(err))
		}
	}
	// Output:
	// unary: DeadlineExceeded No progress for 0.5s (idle timeout). Tool should call heartbeat() during long work.
	// stream: 3 messages, DeadlineExceeded
}
