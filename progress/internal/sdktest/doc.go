// Package sdktest has the tests of the behaviour that all adapters to MCP SDKs share. It runs them in simulated
// time, over transports in memory.
//
// Each adapter describes its SDK in an [SDK], and passes that to [Run]. The tests of servers use a [Peer], a client
// that writes and reads JSON-RPC messages without an SDK, over lines, HTTP and SSE. The tests of clients use a
// [Script], a server without an SDK. So they check the messages that any client or server would receive.
package sdktest
