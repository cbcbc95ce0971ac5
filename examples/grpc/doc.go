// Package grpc shows the few lines that run the methods of a gRPC server under an idle limit
// and a total: an interceptor for unary calls and one for streams. Copy them.
//
// The messages that a stream sends and receives are heartbeats. A call that is stopped by a
// limit has the code DeadlineExceeded, one that its client has cancelled has Canceled.
package grpc
