// Package sdktest tests the behaviours that all adapters to MCP SDKs share. Each is written once, for the tests of
// all of these modules. It runs them in simulated time, over transports in memory.
//
// A module describes its SDK in an [SDK], and hands that to [Run]. Its servers are seen by a [Peer], a client
// that speaks JSON-RPC by hand, over lines, HTTP and SSE; its clients meet a [Script], a server by hand. What
// such a peer sees is what any client sees, whatever the SDK.
package sdktest
