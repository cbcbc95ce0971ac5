package mcpsdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A rawClient speaks JSON-RPC by hand, to see the bytes that the SDK's client decodes.
type rawClient struct {
	t     testing.TB
	in    io.WriteCloser
	lines chan string // closed when the server is gone
}

// newRawClient connects one over pipes. Nothing is read from the server until next is called.
func newRawClient(t testing.TB, s *mcp.Server, wrap func(mcp.Transport) mcp.Transport) *rawClient {
	t.Helper()
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	ss, err := s.Connect(context.Background(), wrap(&mcp.IOTransport{Reader: serverIn, Writer: serverOut}), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &rawClient{t: t, in: in, lines: make(chan string)}
	quit := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case c.lines <- line:
			case <-quit:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(quit)
		_, _ = in.Close(), out.Close()
		_ = ss.Wait()
		<-done
	})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	c.next()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func plain(t mcp.Transport) mcp.Transport { return t }

func (c *rawClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// call sends a tools/call with a token as it stands in JSON.
func (c *rawClient) call(id int, tool, token string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":%s}}}`, id, tool, token))
}

// A rawMessage is what the tests look at of a message.
type rawMessage struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		ProgressToken json.RawMessage `json:"progressToken"`
		Progress      float64         `json:"progress"`
	} `json:"params"`
}

func (c *rawClient) next() rawMessage {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the server is gone")
		}
		var m rawMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		return m
	case <-time.After(slack):
		c.t.Fatal("the server says nothing")
	}
	return rawMessage{}
}
