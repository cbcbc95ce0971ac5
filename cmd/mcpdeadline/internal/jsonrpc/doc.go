// Package jsonrpc has the messages that the proxy passes on: how they are read, so that the proxy goes by what the other
// side goes by, how a stream is split into them, and how they wait for somebody who may not read.
package jsonrpc
