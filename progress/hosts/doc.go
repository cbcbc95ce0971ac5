// Package hosts describes how known hosts, the programs in which models call tools, handle long calls: how long they
// wait, whether progress makes them wait longer, and whether they fetch a result that was not ready later. The package
// only holds these data.
//
// A server finds the host by the name that the client sends when it initializes a session:
//
//	if host, known := hosts.Find(params.ClientInfo.Name); known {
//		within, _ := host.Budget().Answer(progressToken != nil)
//		// within.Left is when an answer is due, and within.Idle after which silence.
//	}
//
// The limits are the defaults of each host; docs/hosts.md names their sources. The names that hosts send, and how they
// handle continuations, were recorded by running the hosts.
//
// # Guarantees
//
//  1. Each value of a host was measured, or is in its documentation or source. A value that is not known is zero. Find
//     finds no host by a name that was not recorded.
//  2. The limits are those of the first table of docs/hosts.md, and the other values are the records of interop/hosts.
//  3. All functions are safe for concurrent use, and their results belong to the caller.
package hosts
