// Package jsonrpc reads and builds the messages that the proxy passes on, splits streams into messages, and queues
// messages for a side that may not read. The proxy reads in a message what the other side reads in it.
package jsonrpc
