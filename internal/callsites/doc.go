// Package callsites tests every place at which the library calls code of the program that uses it.
//
// [Places] computes the places of a module from the types of its exported API. A [Table] has a row for each. The row
// runs an operation that calls code at the place, and bounds the time of the operation whatever the code does.
// [Table.Test] runs the rows in simulated time with code that blocks, panics, calls [runtime.Goexit] and calls back
// into the library (SPEC 3.24). [Table.Complete] fails the test for a place without a row, and Test for a row whose
// code is never called.
//
//	callsites.Table{
//		"heartbeat.Keep(fn)": {Within: total + grace, Do: func(s *callsites.Site) {
//			timeout.Run(context.Background(), func(ctx context.Context) error {
//				return heartbeat.Keep(ctx, 0, func(ctx context.Context) error { s.Hit(ctx); return nil })
//			}, timeout.Config{Total: total, Grace: grace}, timeout.WithRecover())
//		}},
//	}.Test(t, "./...")
//
// At a few places the operation has to wait for the code. Their doc comments say so, and their rows quote the words.
//
// Only tests import this package.
package callsites
