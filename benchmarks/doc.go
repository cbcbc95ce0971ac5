// Package benchmarks measures tooldeadline side by side with what a user would pick
// instead. It has benchmarks and no API.
//
//	go run ./cmd/compare         # all of it, as a table of ratios, in under 8 minutes
//	go run ./cmd/compare -quick  # the same with fewer repetitions, to see that it works
//	go test -bench .             # one by one
//
// The peers are in internal/peer, with a test that each of them keeps the contract
// that it is compared under. What takes a process of its own, such as memory and
// processor time, is in cmd/load.
//
// This is a module of its own so that nobody who uses the library downloads the
// peers.
package benchmarks
