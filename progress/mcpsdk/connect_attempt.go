package mcpsdk

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// An attempt is one try of Connect. It is also the transport that is passed to the SDK, and so gets the connection as
// soon as that exists. It does not wrap the connection, whose type the SDK examines.
type attempt struct {
	transport mcp.Transport
	limits    request.Limits  // of each phase
	ctx       context.Context // the context of the execution; ends when a phase times out

	mu        sync.Mutex
	conn      mcp.Connection // nil until the transport has connected
	phase     string
	succeeded bool
	failed    bool
}

type attemptKey struct{}

// attemptOf returns the attempt to which a request belongs, or nil. The SDK also uses the context of an attempt for the
// session, so requests after a successful attempt have it too; for these attemptOf returns nil.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.succeeded {
		return nil
	}
	return a
}

// Connect implements [mcp.Transport]. It cancels the context of the transport's Connect if the phase times out, and
// never later: with some transports the connection lasts as long as that context.
func (a *attempt) Connect(ctx context.Context) (mcp.Connection, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	defer unhook()
	conn, err := a.transport.Connect(ctx)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	heartbeat.Beat(a.ctx) // the next phase begins
	a.mu.Lock()
	a.conn, a.phase = conn, "handshake"
	failed := a.failed
	a.mu.Unlock()
	if failed { // fail was called before there was a connection to close
		hangUp(conn)
	}
	return conn, nil
}

// hangUp closes a connection. It recovers a panic of Close, which may be the caller's code: the panic would end the
// process.
func hangUp(conn mcp.Connection) {
	defer func() { _ = recover() }()
	_ = conn.Close()
}

// fail closes the connection of the attempt. If the transport connects only later, Connect then closes the connection.
func (a *attempt) fail() {
	a.mu.Lock()
	a.failed = true
	conn := a.conn
	a.mu.Unlock()
	if conn != nil {
		hangUp(conn)
	}
}

// list returns the tools of a server, or nil if the server has no tools. It requests each page as a phase.
func (a *attempt) list(session *mcp.ClientSession) (tools []*mcp.Tool, _ error) {
	if c := session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, nil
	}
	a.enter(methodList)
	ctx := context.WithValue(a.ctx, attemptKey{}, a)
	cursor := ""
	for range maxPages {
		heartbeat.Beat(a.ctx) // each page is a phase
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil
		}
	}
	return nil, fmt.Errorf("the server lists its tools on more than %d pages", maxPages)
}

func (a *attempt) succeed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.succeeded = true
}

func (a *attempt) enter(phase string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase = phase
}

func (a *attempt) current() (phase string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase
}

// maxPages is the largest number of pages of a list that a client reads.
const maxPages = 100
