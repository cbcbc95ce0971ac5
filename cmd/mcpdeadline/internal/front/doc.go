// Package front serves hosts over Streamable HTTP, with a session for each host, and one session for all requests of
// protocol 2026-07-28, which stand alone. It bounds the number of sessions and the memory for hosts that do not read or
// have disconnected, and selects the HTTP response for each message.
package front
