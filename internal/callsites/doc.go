// Package callsites attacks every place at which the library calls code of the program that uses it.
//
// [Places] computes the places of a module from the types of its exported API. A [Table] has a row for each: how to
// come to the place, and by when the operation has to be over whatever the code does there. [Table.Test] goes
// through them in simulated time with code that blocks, panics, calls [runtime.Goexit] and calls back into the
// library (SPEC 3.24). A place without a row fails the test, and so does a row whose code is never called.
//
//	callsites.Table{
//		"heartbeat.Keep(fn)": {Within: total + grace, Do: func(s *callsites.Site) {
//			timeout.Run(context.Background(), func(ctx context.Context) error {
//				return heartbeat.Keep(ctx, 0, func(ctx context.Context) error { s.Hit(ctx); return nil })
//			}, timeout.Config{Total: total, Grace: grace}, timeout.WithRecover())
//		}},
//	}.Test(t, "./...")
//
// The few places where the operation has to wait for the code say so in their doc comment, and the row quotes it.
//
// Only tests import this package.
package callsites
