// Package interop tests worker/temporalworker with a real Temporal server, which runs in memory. The server takes
// minutes to build, so "make temporal" runs these tests, and "make test" does not.
package interop
