// Package inspect serves a page that shows what the executions of a program are doing: live,
// with the last outcomes, and with what their silences say about a good idle limit.
//
// As with net/http/pprof, a blank import registers it, at /debug/tools of
// [http.DefaultServeMux]:
//
//	import _ "github.com/tooldeadline/tooldeadline/timeout/inspect"
//
// [Handler] serves it elsewhere. For a terminal there is the same as text, which is what curl
// gets; ?format=json is for programs.
//
// # Guarantees
//
//  1. A program that does not import the package pays nothing for it. One that does is watched
//     from its start; see [timeout.Watch] for what that costs a run.
//  2. Memory is bounded, whatever runs: the figures of 500 tools, the last 1000 outcomes, and
//     the timelines of 2000 executions at a time. What is beyond is counted, and not kept.
//  3. Only requests of this machine are answered, and only under one of its own names, so that
//     no page of another site can reach it by a name that it makes resolve to this machine; see
//     [WithAllow]. A request that was forwarded is not one of this machine, where it says so:
//     a proxy on this machine that adds no header and sends this server's name cannot be told
//     from a browser.
//  4. Nothing can be changed unless [WithAbort] is given, and then only by a request from the
//     page itself.
//  5. The page needs nothing from elsewhere: no script, style, font or picture of another
//     server. It works without JavaScript; with it, it is live.
//
// All functions and methods are safe for concurrent use.
package inspect
