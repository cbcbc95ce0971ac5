package request

import (
	"math"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// margin is how long a client waits beyond the limit and the grace of a server, for messages in transit.
const margin = time.Second

// declared returns the limits of a request for which the server has declared d, cut to the ceiling.
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

// add returns limit, longer by the grace and the margin, or the longest Duration on overflow.
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

// maxDeclarations bounds the number of tools that [Declarations] and [Hints] each remember.
const maxDeclarations = 10_000

// Declarations holds the limits that one server has declared to its client. The zero Declarations is ready to use. It
// is safe for concurrent use.
type Declarations struct {
	mu     sync.Mutex
	server *policy.Declaration
	tools  map[string]policy.Declaration
}

// Tool records the declaration in the _meta of a tool, from the result of tools/list. It replaces an earlier
// declaration of the tool, also if meta contains none or an invalid one. An empty name stands for the server itself;
// meta is then the extensions among its capabilities, from the result of initialize or server/discover. At most 10 000
// tools are remembered; beyond that, Tool forgets arbitrary ones.
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
	case !ok:
		delete(d.tools, name)
	default:
		remember(&d.tools, name, l)
	}
}

// remember sets an entry of a map, which has at most maxDeclarations entries.
func remember[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	if len(*m) >= maxDeclarations {
		for other := range *m {
			delete(*m, other)
			break
		}
	}
	(*m)[name] = v
}

// Limits returns the limits of a request, computed from the server's declarations. A tools/call has the limits declared
// for the tool, or else those for all tools; any other request has the limits declared for its method, and tool is
// ignored. Limits returns nil if there is no such declaration, or if d is nil.
//
// If an idle limit is declared, the Timeout is the longer of that limit and the declared interval of notifications, and
// progress renews it; otherwise the Timeout is the total. MaxTotal is the total, or 0 if there is none. Each is longer
// by the grace and 1 s, so that the server stops the tool first, and its answer arrives.
//
// Servers may declare anything, so the ceiling bounds Timeout and MaxTotal. It also sets a limit that the declaration
// leaves out. A limit of 0 in the ceiling bounds nothing. If the ceiling has ResetOnProgress, progress renews the
// Timeout in any case.
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
