package main

import "github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"

// mostSaid is the number of bytes queued for stderr beyond which a lossyWriter drops text.
const mostSaid = 1 << 20

// A lossyWriter drops text while more than mostSaid bytes are queued, so that a host that does not read stderr does not
// block the server.
type lossyWriter struct{ *jsonrpc.Outbox }

func (l lossyWriter) Write(p []byte) (int, error) {
	l.Offer(p, mostSaid)
	return len(p), nil
}
