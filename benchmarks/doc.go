// Package benchmarks compares tooldeadline with its alternatives. It has benchmarks and no API.
//
//	go run ./cmd/compare         # everything, as a table of ratios, in under 8 minutes
//	go run ./cmd/compare -quick  # the same with fewer repetitions, as a check
//	go test -bench .             # the benchmarks alone
//
// The peers are in internal/peer, with a test that each keeps the contract under which it is compared.
// Measurements that need their own process, such as memory and processor time, are in cmd/load.
//
// The package is its own module so that users of the library do not download the peers.
package benchmarks
