// Package jsonrpc parses and builds the messages that the proxy forwards, splits streams into messages, and queues
// messages for a peer that may not read. It detects messages that the peer might parse to other values than the proxy.
package jsonrpc
