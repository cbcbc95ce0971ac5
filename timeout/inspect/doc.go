// Package inspect serves a page that shows what the executions of a program are doing: the executions in progress,
// live; the latest outcomes; and, for each tool, the idle limit that its silences suggest.
//
// A blank import registers the page at /debug/tools of [http.DefaultServeMux], as with net/http/pprof:
//
//	import _ "github.com/tooldeadline/tooldeadline/timeout/inspect"
//
// [Handler] serves the page at another address. Clients that do not accept HTML, such as curl, get the same content
// as text. Programs can request JSON with ?format=json.
//
// # Guarantees
//
//  1. A program that does not import the package pays nothing for it. A program that does is
//     watched from its start; see [timeout.Watch] for the cost per run.
//  2. Memory is bounded, whatever runs: the package keeps the figures of 500 tools, the last 1000 outcomes, and the
//     timelines of 2000 executions at a time. Anything beyond that is counted but not kept.
//  3. Only requests from this machine are answered, and only if the Host header is one of this machine's names, so that
//     another site cannot read the page through a name of its own that resolves to this machine; see [Options]. A
//     request that is marked as forwarded is refused. However, a proxy on this machine that adds no header and sends
//     this server's name cannot be distinguished from a browser.
//  4. Nothing can be changed without [Options].Abort, and then only by a request from the page itself.
//  5. The page loads no script, style, font or picture from another server. It works without
//     JavaScript, but is live only with it.
//
// All functions and methods are safe for concurrent use.
package inspect
