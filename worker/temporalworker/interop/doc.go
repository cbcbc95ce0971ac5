// Package interop has a real Temporal server, in memory, drive worker/temporalworker. It is no part of
// "make test", since the server takes minutes to build: "make temporal" runs it.
package interop
