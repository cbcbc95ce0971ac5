// Package stacks finds the stack of one goroutine at a bounded cost.
//
// The runtime cannot return the stack of a single goroutine, and recording the goroutine's number
// at its start would cost every run a microsecond for the sake of the few that get stuck. So a
// sample takes the stacks of all goroutines, which stops the world, and finds the wanted one by an
// argument of one of its frames. A [Sampler] bounds the time for which the world is stopped:
//
//  1. Concurrent callers share one sample.
//  2. No sample is taken if there are more goroutines than the caller allows. Such a caller does not wait for others.
//  3. Samples take at most 1 % of the time, with a credit of 5 ms.
//  4. With Sampler.Quiet, no sample is taken while calls of Take follow closely on each other,
//     because it would delay the callers. After 5 s a sample is taken all the same.
//  5. A caller that gets no new sample for one of these reasons gets the last one, if it is still
//     in memory, marked as not fresh.
package stacks
