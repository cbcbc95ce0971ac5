// Package stacks finds the stack of one goroutine, at a bounded price.
//
// The runtime offers no way to ask for a single goroutine's stack, and to note the
// goroutine's number when it starts would cost every run a microsecond for the sake of
// the few that get stuck. So the stacks of all goroutines are taken, which stops the
// world, and the wanted one is found by an argument of one of its frames. A [Sampler]
// keeps that from becoming a stall of its own:
//
//  1. Callers that come at the same time share one sample.
//  2. No sample is taken of more goroutines than the caller finds affordable, and a caller that
//     is refused for that waits for nobody.
//  3. At most 1 % of the time is spent on samples, but for 5 ms in advance.
//  4. Who cannot have a sample for one of these reasons gets the last one, if it is
//     still in memory, and is told that it is not fresh.
package stacks
