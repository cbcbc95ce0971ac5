package sdktest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The versions of the protocol with which the tests run.
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
	// Connect calls Connect of the adapter, with a limit of 5 s. open returns the pipes of a new connection for each
	// try. end closes the client.
	Connect func(ctx context.Context, c ConnectConfig, open func() (io.Reader, io.WriteCloser, error)) (end func(), err error)
	// ErrorsAreResults is set if an error of a tool becomes a result with isError, and not a JSON-RPC error.
	ErrorsAreResults bool
	// LosesAnswersOverSSE is set if an answer over SSE that has not been written when a Drain ends is lost.
	LosesAnswersOverSSE bool
	// TasksOverSSE is set if tasks work over SSE, and AsksOverSSE if questions do.
	TasksOverSSE, AsksOverSSE bool
	// FaultStatus is set if a JSON-RPC error has its own HTTP status, from 2026-07-28 on.
	FaultStatus bool
	// DropsMeta is set if notifications have a _meta only over lines.
	DropsMeta bool
	// OneLine is set if a process can have only one server over lines at a time.
	OneLine bool
	// ElicitAwaits is set if Elicit of a Call itself waits under progress.Await, with Await of the Config.
	ElicitAwaits bool
	// ForgetsHints is set if a client drops the annotations of tools when the server reports that its tools have
	// changed.
	ForgetsHints bool
	// LimitsWholeTask is set if the limits of a client apply to a followed task as a whole, and not to each request.
	LimitsWholeTask bool
	// MinPoll is the shortest time between two polls of a task.
	MinPoll time.Duration
	// SessionsEndWithConnections is set if a client loses its session when its connections are lost.
	SessionsEndWithConnections bool
	// CarriesIDs is set if the adapter passes the id of a request in _meta, and removes it before the tool is called.
	CarriesIDs bool
	// Forms holds further ways to write a tool, by name, such as a typed handler. Each function returns a server whose
	// tool, with the name tool, calls fail and returns its error, under the policy p.
	Forms map[string]func(tool string, p *policy.Policy, fail func(context.Context) error) Server
	// Ways has the ways that only this SDK supports.
	Ways []Way
	// Code returns the code of the JSON-RPC error in err, or 0 if there is none.
	Code      func(err error) int
	SetResult func(err error, partial string) *Result
}

// ways returns the ways that all SDKs support, and those of this SDK.
func (sdk SDK) ways() []Way { return append(slices.Clip(Ways), sdk.Ways...) }

// A Config configures a server.
type Config struct {
	Tools        map[string]Tool
	Policy       *policy.Policy
	Hooks        timeout.Hooks
	Interval     time.Duration
	Meta         bool // requests may set timeoutMs in _meta
	Arguments    bool // requests may set timeoutMs in the arguments
	Await        progress.Wait
	Declared     bool
	Methods      map[string]policy.Declaration
	Tasks        *task.Tasks
	Continuation time.Duration
	WaitTool     string
	Hosts        bool
	Idempotency  bool
	PageSize     int
	Lists        func(ctx context.Context) // called before each answer to tools/list, if not nil
}

// Options returns the settings of the adapter for c.
func (c Config) Options() *adapter.Options {
	o := &adapter.Options{Policy: c.Policy, Hooks: c.Hooks, Interval: c.Interval, MetaTimeout: c.Meta, ArgumentTimeout: c.Arguments, Await: c.Await,
		Declare: c.Declared || c.Methods != nil, Methods: c.Methods, Tasks: c.Tasks, Idempotency: c.Idempotency, Hosts: c.Hosts}
	if c.Continuation > 0 {
		o.Continuation = &adapter.Continuation{After: c.Continuation, Tool: c.WaitTool}
	}
	return o
}

// A Server is a server of the SDK, with the adapter's Install.
type Server interface {
	// Serve calls Serve of the adapter.
	Serve(ctx context.Context, in io.Reader, out io.Writer, limit time.Duration) error
	// HTTP and SSE return the SDK's handlers, wrapped by WrapHTTP of the adapter.
	HTTP(stateless bool) http.Handler
	SSE() http.Handler
	// Tell sends a notification with the value to all clients, on their streams of notifications.
	Tell(value float64)
	// Close ends all sessions.
	Close()
}

// A Tool is a tool of a server.
type Tool struct {
	Run        func(ctx context.Context, c *Call) (*Result, error)
	Meta       map[string]any
	Idempotent bool
	ReadOnly   bool
	Output     bool // it has an output schema
}

// A Call is a call of a tool, and the functions that the tool can use.
type Call struct {
	Token     any
	Arguments map[string]any
	Meta      map[string]any
	Answers   map[string]string // the actions with which a person answered, by the key of the question
	State     string
	Elicit    func(ctx context.Context, message string) (action string, err error)
	Sample    func(ctx context.Context) (model string, err error)
	// Notify sends a progress notification with the SDK, without the adapter.
	Notify func(ctx context.Context, progress float64, message string)
}

// A Result is the result of a tool, as a server returns it or a client receives it.
type Result struct {
	Texts      []string
	IsError    bool
	Structured any
	Meta       map[string]any
	Ask        map[string]string // questions, by key
	State      string
}

// Text returns a result with one text.
func Text(text string) *Result { return &Result{Texts: []string{text}} }

// A ClientConfig configures a client.
type ClientConfig struct {
	Limits      request.Limits
	PerMethod   map[string]request.Limits
	Hooks       timeout.Hooks // of the executions of requests
	Logger      *slog.Logger
	UseDeclared *request.Limits // the ceiling of declared limits; nil means that they are not used
	Retry       []string        // the methods to send again; nil means none
	Follow      bool
	Version     string
	OnProgress  func(ctx context.Context, token any, progress float64, message string)
	OnChanged   func()              // called when the list of tools has changed
	OnTold      func(value float64) // called with the values of Tell; over HTTP the client then opens a stream
	Elicit      func(ctx context.Context, message string) string
}

// Options returns the settings of Limit for c, without the default limits.
func (c ClientConfig) Options() *request.Options {
	if c.PerMethod == nil {
		c.PerMethod = map[string]request.Limits{}
	}
	return &request.Options{Limits: &c.Limits, PerMethod: c.PerMethod, Declared: c.UseDeclared, Retry: c.Retry, FollowTasks: c.Follow, Hooks: c.Hooks, Logger: c.Logger}
}

// A Client is a client of the SDK.
type Client interface {
	// Connect connects the client to a server over lines.
	Connect(ctx context.Context, in io.Reader, out io.WriteCloser) error
	// ConnectHTTP connects the client to a server over Streamable HTTP.
	ConnectHTTP(ctx context.Context, url string, c *http.Client) error
	Call(ctx context.Context, tool string, token any, meta map[string]any) (*Result, error)
	// Request sends a tools/list, ping or resources/read. tools has the names of the listed tools.
	Request(ctx context.Context, method string) (tools []string, err error)
	Close()
}
