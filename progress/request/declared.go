package request

import (
	"math"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// margin is how long a client waits beyond the limits of the server, for the way of the messages.
const margin = time.Second

// declared returns the limits for a call of a tool whose server has declared d.
func declared(d policy.Declaration, ceiling Limits) Limits {
	l := Limits{ResetOnProgress: d.Idle > 0 || ceiling.ResetOnProgress}
	if d.Total > 0 {
		l.MaxTotal = add(d.Total, d.Grace)
		l.Timeout = l.MaxTotal
	}
	if d.Idle > 0 {
		l.Timeout = add(max(d.Idle, d.Progress), d.Grace)
	}
	l.Timeout = atMost(l.Timeout, ceiling.Timeout)
	l.MaxTotal = atMost(l.MaxTotal, ceiling.MaxTotal)
	return l
}

func add(limit, grace time.Duration) time.Duration {
	rest := max(grace, 0) + margin
	if rest < margin || limit > math.MaxInt64-rest {
		return math.MaxInt64
	}
	return limit + rest
}

// atMost returns the smaller of limit and ceiling, where 0 means no limit.
func atMost(limit, ceiling time.Duration) time.Duration {
	switch {
	case ceiling <= 0:
		return limit
	case limit <= 0:
		return ceiling
	}
	return min(limit, ceiling)
}

// maxDeclarations bounds how many declarations of one server a client remembers.
const maxDeclarations = 10_000

// Declarations holds the limits that one server has declared to its client. The zero Declarations is ready to use. It
// is safe for concurrent use.
type Declarations struct {
	mu     sync.Mutex
	server *policy.Declaration
	tools  map[string]policy.Declaration
}

// Tool records the _meta of a tool, from the result of tools/list, in place of an earlier _meta of the same tool. An
// empty name stands for the server itself; then meta are the extensions among its capabilities, from the result of
// initialize or server/discover. At most 10 000 tools are remembered; beyond that, some are forgotten.
func (d *Declarations) Tool(name string, meta map[string]any) {
	l, ok := policy.ReadDeclaration(meta)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case name == "":
		d.server = nil
		if ok {
			d.server = &l
		}
		return
	case !ok:
		delete(d.tools, name)
		return
	case d.tools == nil:
		d.tools = make(map[string]policy.Declaration)
	case len(d.tools) >= maxDeclarations:
		for any := range d.tools {
			delete(d.tools, any)
			break
		}
	}
	d.tools[name] = l
}

// Limits returns the limits for a request of a method, and for a tools/call of the tool, made from what the server has
// declared: for the tool, the method, or all tools. It returns nil if the server has declared none, or if d is nil.
//
// If an idle limit is declared, the Timeout is the longer of that limit and the time between two
// notifications, and progress renews it; otherwise the Timeout is the total. MaxTotal is the total,
// or 0 if there is none. Each is longer by the grace and 1 s, so that the server stops the tool
// first, and its answer arrives.
//
// Servers may declare anything, so the limits of the ceiling, if it has any, bound Timeout and
// MaxTotal, even if the server declares none. If the ceiling has ResetOnProgress, progress renews
// the Timeout in any case, even if the Timeout comes from the ceiling alone or is shorter than the
// total.
func (d *Declarations) Limits(method, tool string, ceiling Limits) *Limits {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.tools[tool]
	switch {
	case method != "tools/call" && d.server != nil:
		l, ok = d.server.Method(method)
	case method != "tools/call":
		ok = false
	case !ok && d.server != nil:
		l, ok = *d.server, true
	}
	if !ok {
		return nil
	}
	limits := declared(l, ceiling)
	return &limits
}
