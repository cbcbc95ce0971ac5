package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Unary returns an interceptor that runs the unary methods of a server under limits. The name of an execution is the
// full name of its method.
func Unary(opts ...timeout.Option) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		res, err := timeout.Do(ctx, func(ctx context.Context) (any, error) {
			return handler(ctx, req)
		}, append([]timeout.Option{timeout.WithName(info.FullMethod)}, opts...)...)
		return res, toStatus(err)
	}
}

// Stream returns an interceptor that runs the streaming methods of a server under limits, like Unary. Each message is a
// heartbeat.
func Stream(opts ...timeout.Option) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := timeout.Run(ss.Context(), func(ctx context.Context) error {
			return handler(srv, beating{ss, ctx})
		}, append([]timeout.Option{timeout.WithName(info.FullMethod)}, opts...)...)
		return toStatus(err)
	}
}

// A beating is a stream whose context is that of the execution, and whose messages are heartbeats.
type beating struct {
	grpc.ServerStream
	ctx context.Context
}

func (s beating) Context() context.Context { return s.ctx }

func (s beating) SendMsg(m any) error { return s.do(s.ServerStream.SendMsg, m) }
func (s beating) RecvMsg(m any) error { return s.do(s.ServerStream.RecvMsg, m) }

func (s beating) do(transfer func(any) error, m any) error {
	if err := s.ctx.Err(); err != nil {
		return err // a stopped handler may not use the stream, because the call may have been answered
	}
	err := transfer(m)
	if err == nil {
		heartbeat.Beat(s.ctx)
	}
	return err
}

// toStatus returns the error for the client: DeadlineExceeded if a limit stopped the method, Canceled if the caller
// aborted it, and otherwise err.
func toStatus(err error) error {
	stop := (*timeout.Error)(nil)
	if !errors.As(err, &stop) {
		return err
	}
	if stop.Timeout() {
		return status.Error(codes.DeadlineExceeded, stop.Error())
	}
	return status.Error(codes.Canceled, stop.Error())
}
