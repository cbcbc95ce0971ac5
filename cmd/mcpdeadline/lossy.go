package main

import "github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"

// mostSaid is how many bytes of stderr may wait.
const mostSaid = 1 << 20

// A lossyWriter drops text while mostSaid bytes wait: a host that does not read the log of a server must not stop the
// server.
type lossyWriter struct{ *jsonrpc.Outbox }

func (l lossyWriter) Write(p []byte) (int, error) {
	l.Offer(p, mostSaid)
	return len(p), nil
}
