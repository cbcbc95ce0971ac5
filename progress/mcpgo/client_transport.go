package mcpgo

import (
	"io"

	"github.com/mark3labs/mcp-go/client/transport"
)

// Clients and helpers of mcp-go look at what a transport can do by asserting its type. A
// wrapper must be able to do the same, and no more.

// A passing is a transport that implements the optional methods whose absence has no effect: it passes on each call
// if the other transport has the method.
type passing struct{ transport.Interface }

// RequiresLegacyProtocol reports what the other transport reports, and false if it has no such method.
func (p passing) RequiresLegacyProtocol() bool {
	t, ok := p.Interface.(interface{ RequiresLegacyProtocol() bool })
	return ok && t.RequiresLegacyProtocol()
}

// SetConnectionLostHandler passes the handler of the client's OnConnectionLost on.
func (p passing) SetConnectionLostHandler(handler func(error)) {
	if t, ok := p.Interface.(interface{ SetConnectionLostHandler(func(error)) }); ok {
		t.SetConnectionLostHandler(handler)
	}
}

// requests is a transport that receives requests of the server.
type requests struct {
	t transport.BidirectionalInterface
}

func (r requests) SetRequestHandler(handler transport.RequestHandler) { r.t.SetRequestHandler(handler) }

// versions is a transport to which the client reports the negotiated version of the protocol.
type versions struct {
	t       transport.HTTPConnection
	observe func(string)
}

func (v versions) SetProtocolVersion(version string) {
	v.observe(version)
	v.t.SetProtocolVersion(version)
}

// output is a transport with the stderr of a command.
type output struct {
	stderr interface{ Stderr() io.Reader }
}

func (o output) Stderr() io.Reader { return o.stderr.Stderr() }

// A wrapper is a transport around another.
type wrapper interface {
	transport.Interface
	RequiresLegacyProtocol() bool
	SetConnectionLostHandler(func(error))
}

// complete returns w with the optional methods that inner has. observe may be nil.
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
