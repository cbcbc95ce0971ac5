// Package hosts says what known hosts, the programs in which models call tools, do with long calls: for how long they
// wait, whether progress makes them wait longer, and whether they come back for a result that was not ready. It is data,
// and decides nothing.
//
// A server learns which host it has when that initializes the session:
//
//	if host, known := hosts.Find(params.ClientInfo.Name); known {
//		within, _ := host.Budget().Answer(progressToken != nil)
//		// within.Left is when an answer is due, and within.Idle after which silence.
//	}
//
// The limits are those that a host has if nobody has changed its settings; docs/hosts.md says where each comes from. What
// a host calls itself, and what it does with continuations, was recorded by running it.
//
// # Guarantees
//
//  1. What is said of a host was measured, or is in its documentation or source. What is not known is zero, and no host is
//     found by a name that was not recorded.
//  2. The table is the first one of docs/hosts.md, and the records are those of interop/hosts.
//  3. All functions are safe for concurrent use, and what they return belongs to the caller.
package hosts
