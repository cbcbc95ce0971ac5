package sdktest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The protocols that differ for us.
const (
	Old = "2025-11-25"
	New = "2026-07-28"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// An SDK connects the tests to the SDK that a module adapts.
type SDK struct {
	NewServer func(Config) Server
	NewClient func(ClientConfig) Client
	// Connect is that of the module, with a limit of 5 s, over lines of which it opens new ones for each try. What it
	// returns closes the client.
	Connect func(ctx context.Context, c ConnectConfig, open func() (io.Reader, io.WriteCloser, error)) (end func(), err error)
	// ErrorsAreResults says that an error of a tool is a result with isError, and no JSON-RPC error.
	ErrorsAreResults bool
	// LosesAnswersOverSSE says that an answer that has not been written when a Drain ends is lost.
	LosesAnswersOverSSE bool
	// TasksOverSSE and AsksOverSSE say what there is over SSE.
	TasksOverSSE, AsksOverSSE bool
	// FaultStatus says that an error has a status of HTTP, from 2026-07-28 on.
	FaultStatus bool
	// DropsMeta says that a notification has no _meta but over lines.
	DropsMeta bool
	// OneLine says that a process can have one server over lines at a time.
	OneLine bool
	// ElicitAwaits says that Elicit itself awaits the person, with the options that it is given.
	ElicitAwaits bool
	// ForgetsHints says that a client that hears that the tools have changed forgets what they have said of themselves.
	ForgetsHints bool
	// LimitsWholeTask says that the limits of a client are those of a task that it follows, and not of each request.
	LimitsWholeTask bool
	// MinPoll is how far apart polls of a task are at least.
	MinPoll time.Duration
	// SessionsEndWithConnections says that a client whose connections are lost has lost its session, too.
	SessionsEndWithConnections bool
	// CarriesIDs says that the adapter brings the id of a request to the call in _meta, where the tool does not see it.
	CarriesIDs bool
	// Forms are the other ways to write a tool that fails, and to have it under a policy.
	Forms map[string]func(tool string, p *policy.Policy, fail func(context.Context) error) Server
	// Ways are those that other SDKs do not have.
	Ways []Way
	// Code returns the code of a JSON-RPC error, or 0 for any other error.
	Code      func(err error) int
	SetResult func(err error, partial string) *Result
}

// A Config configures a server.
type Config struct {
	Tools        map[string]Tool
	Policy       *policy.Policy
	Hooks        timeout.Hooks
	Interval     time.Duration
	Meta         bool // requests may set timeoutMs in _meta
	Arguments    bool // timeoutMs is read in the arguments, too
	Await        progress.Wait
	Declared     bool
	Methods      map[string]policy.Declaration
	Tasks        *task.Tasks
	Continuation time.Duration
	WaitTool     string
	Hosts        bool
	Idempotency  bool
	PageSize     int
	Lists        func(ctx context.Context) // is called before each tools/list is answered
}

// A Server is a server of the SDK with the library installed.
type Server interface {
	// Serve is that of the module.
	Serve(ctx context.Context, in io.Reader, out io.Writer, limit time.Duration) error
	// HTTP and SSE are the SDK's handlers, wrapped.
	HTTP(stateless bool) http.Handler
	SSE() http.Handler
	// Tell says something to all clients, on their streams of notifications.
	Tell(value float64)
	// Close ends all sessions.
	Close()
}

// A Tool is a function with its description by the server.
type Tool struct {
	Run        func(ctx context.Context, c *Call) (*Result, error)
	Meta       map[string]any
	Idempotent bool
	ReadOnly   bool
	Output     bool // it has an output schema
}

// A Call is the argument of a tool.
type Call struct {
	Token     any
	Arguments map[string]any
	Meta      map[string]any
	Answers   map[string]string // actions, by the key of the question
	State     string
	Elicit    func(ctx context.Context, message string) (action string, err error)
	Sample    func(ctx context.Context) (model string, err error)
	// Notify sends progress with the SDK alone.
	Notify func(ctx context.Context, progress float64, message string)
}

// A Result is the result of a tool, for the server and for the client.
type Result struct {
	Texts      []string
	IsError    bool
	Structured any
	Meta       map[string]any
	Ask        map[string]string // questions, by key
	State      string
}

// Text is a result of one text.
func Text(text string) *Result { return &Result{Texts: []string{text}} }

// A ClientConfig configures a client.
type ClientConfig struct {
	Limited     bool
	Limits      request.Limits
	PerMethod   map[string]request.Limits
	Hooks       timeout.Hooks // of requests
	Logger      *slog.Logger
	UseDeclared *request.Limits // the ceiling
	Retry       []string        // methods; nil does not retry
	Follow      bool
	Version     string
	OnProgress  func(ctx context.Context, token any, progress float64, message string)
	OnChanged   func()              // the list of tools
	OnTold      func(value float64) // called with what Tell says; over HTTP the client then listens
	Elicit      func(ctx context.Context, message string) string
}

// A Client is a client of the SDK.
type Client interface {
	// Connect speaks to a server by lines.
	Connect(ctx context.Context, in io.Reader, out io.WriteCloser) error
	// ConnectHTTP speaks to a server over Streamable HTTP.
	ConnectHTTP(ctx context.Context, url string, c *http.Client) error
	Call(ctx context.Context, tool string, token any, meta map[string]any) (*Result, error)
	// Request sends one of tools/list, ping and resources/read.
	Request(ctx context.Context, method string) (tools []string, err error)
	Close()
}
