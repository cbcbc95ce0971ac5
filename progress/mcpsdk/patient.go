package mcpsdk

import (
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

// patient returns a transport like t that reads and writes files as package stdio does, because t may share its files
// with processes that make them non-blocking.
func patient(t mcp.Transport) mcp.Transport {
	switch t := t.(type) {
	case *mcp.StdioTransport:
		return &mcp.IOTransport{Reader: stdio.New(os.Stdin), Writer: keepOpen{stdio.New(os.Stdout)}, MaxLineLength: t.MaxLineLength}
	case *mcp.IOTransport:
		p := *t
		if f, ok := p.Reader.(*os.File); ok && f != nil {
			p.Reader = stdio.New(f)
		}
		if f, ok := p.Writer.(*os.File); ok && f != nil {
			p.Writer = stdio.New(f)
		}
		return &p
	case *mcp.LoggingTransport:
		p := *t
		p.Transport = patient(p.Transport)
		if f, ok := p.Writer.(*os.File); ok && f != nil {
			p.Writer = stdio.New(f)
		}
		return &p
	}
	return t
}

// keepOpen is a writer whose Close does nothing, because the SDK does not close os.Stdout either.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
