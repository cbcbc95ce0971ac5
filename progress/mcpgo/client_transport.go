package mcpgo

import (
	"io"

	"github.com/mark3labs/mcp-go/client/transport"
)

// Clients and helpers of mcp-go find out by type assertions which optional methods a transport has. A wrapper must
// have exactly the optional methods of the transport inside.

// A passing wraps a transport, and has two optional methods in any case: they pass the call on if the transport inside
// has the method, and otherwise do nothing, to the same effect as no method.
type passing struct{ transport.Interface }

// RequiresLegacyProtocol returns the result of the transport inside, or false if that has no such method.
func (p passing) RequiresLegacyProtocol() bool {
	t, ok := p.Interface.(interface{ RequiresLegacyProtocol() bool })
	return ok && t.RequiresLegacyProtocol()
}

// SetConnectionLostHandler passes the handler of the client's OnConnectionLost to the transport inside.
func (p passing) SetConnectionLostHandler(handler func(error)) {
	if t, ok := p.Interface.(interface{ SetConnectionLostHandler(func(error)) }); ok {
		t.SetConnectionLostHandler(handler)
	}
}

// requests has the optional method by which the client receives requests of the server.
type requests struct {
	t transport.BidirectionalInterface
}

func (r requests) SetRequestHandler(handler transport.RequestHandler) { r.t.SetRequestHandler(handler) }

// versions has the optional method to which the client passes the negotiated version of the protocol. It calls observe
// with the version first.
type versions struct {
	t       transport.HTTPConnection
	observe func(string)
}

func (v versions) SetProtocolVersion(version string) {
	v.observe(version)
	v.t.SetProtocolVersion(version)
}

// output has the optional method that returns the stderr of a command.
type output struct {
	stderr interface{ Stderr() io.Reader }
}

func (o output) Stderr() io.Reader { return o.stderr.Stderr() }

// A wrapper is a transport with the methods of a passing.
type wrapper interface {
	transport.Interface
	RequiresLegacyProtocol() bool
	SetConnectionLostHandler(func(error))
}

// complete returns w with those optional methods that inner has. observe, if not nil, is called with the negotiated
// version of the protocol, if inner has SetProtocolVersion.
func complete(w wrapper, inner transport.Interface, observe func(version string)) transport.Interface {
	if observe == nil {
		observe = func(string) {}
	}
	b, isB := inner.(transport.BidirectionalInterface)
	h, isH := inner.(transport.HTTPConnection)
	s, isS := inner.(interface{ Stderr() io.Reader })
	r, v, o := requests{b}, versions{h, observe}, output{s}
	switch {
	case isB && isH && isS:
		return struct {
			wrapper
			requests
			versions
			output
		}{w, r, v, o}
	case isB && isH:
		return struct {
			wrapper
			requests
			versions
		}{w, r, v}
	case isB && isS:
		return struct {
			wrapper
			requests
			output
		}{w, r, o}
	case isH && isS:
		return struct {
			wrapper
			versions
			output
		}{w, v, o}
	case isB:
		return struct {
			wrapper
			requests
		}{w, r}
	case isH:
		return struct {
			wrapper
			versions
		}{w, v}
	case isS:
		return struct {
			wrapper
			output
		}{w, o}
	}
	return w
}
