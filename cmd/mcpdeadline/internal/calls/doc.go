// Package calls connects a host with a server in a session: it handles each message, runs tool calls under their
// limits, continues calls after their answer, and detects and restarts servers that hang.
package calls
