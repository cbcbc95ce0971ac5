package request

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Limiter holds the limits per method of one client, and its requests that wait for progress. It is safe for
// concurrent use. Make one with [New].
type Limiter struct {
	table   table
	options []timeout.Setting

	prefix string // of its tokens; nobody else's begin with it
	last   atomic.Uint64

	mu      sync.Mutex
	waiting map[waiterKey]*waiter
}

// The session is part of the key, so that one server cannot renew the limits of a request to another.
type waiterKey struct {
	session any
	number  string
}

// A waiter is a request that progress renews. It is entered before the execution exists, and the same
// goroutine removes it, so that nothing can be left of it.
type waiter struct {
	monitor atomic.Pointer[heartbeat.Monitor]
}

// New returns a Limiter. The limits of a method are those under its name in perMethod, or else
// those under the longest matching pattern there, which is a prefix with a star such as
// "resources/*", or else the defaults. The map is copied.
//
// Each request under a limit is an execution of package timeout with the given options, such as
// [timeout.WithLogger] and [timeout.WithHooks]. Its name is the method, even if a [timeout.WithName] is
// among them.
func New(defaults Limits, perMethod map[string]Limits, opts ...timeout.Setting) *Limiter {
	return &Limiter{
		table:   newTable(defaults, perMethod),
		options: slices.Clone(opts),
		prefix:  "td-" + rand.Text()[:10] + "-",
		waiting: make(map[waiterKey]*waiter),
	}
}

// Progress takes the token of a progress notification that was received on a session, which is the Session of
// a [Call]. It renews the limit of the request that the token belongs to. A notification that arrives after
// the request has ended renews nothing, and is not an error.
//
// Progress returns the token for the caller's handler: the token that the caller has set, in the form that
// encoding/json decodes it to, even if the request has ended. If the caller has set no token, wanted is
// false, because the caller has not asked for progress. A token that c has not made is returned unchanged,
// with wanted true.
func (c *Limiter) Progress(session, token any) (own any, wanted bool) {
	text, _ := token.(string)
	text, ours := strings.CutPrefix(text, c.prefix)
	if !ours {
		return token, true
	}
	number, suffix, _ := strings.Cut(text, "-")
	key := waiterKey{identity.Key(session), number}
	c.mu.Lock()
	w := c.waiting[key]
	c.mu.Unlock()
	if w != nil {
		w.monitor.Load().Beat()
	}
	return decodeOwn(suffix)
}

// await registers a request and returns its token. ok is false if the token cannot contain the caller's own token;
// the SDK would not have accepted that one, either.
func (c *Limiter) await(session, own any) (token string, w *waiter, leave func(), ok bool) {
	suffix, ok := encodeOwn(own)
	if !ok {
		return "", nil, nil, false
	}
	key := waiterKey{identity.Key(session), strconv.FormatUint(c.last.Add(1), 10)}
	w = new(waiter)
	c.mu.Lock()
	c.waiting[key] = w
	c.mu.Unlock()
	leave = func() {
		c.mu.Lock()
		delete(c.waiting, key)
		c.mu.Unlock()
	}
	return c.prefix + key.number + suffix, w, leave, true
}

// The caller's own token travels inside ours. A table would have to keep it for as long
// as a late notification may come, and nobody knows how long that is: SDKs call their
// handlers after the response.

func encodeOwn(own any) (suffix string, ok bool) {
	switch own := own.(type) {
	case nil:
		return "", true
	case string:
		return "-s" + own, true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, json.Number, json.RawMessage:
		b, err := json.Marshal(own)
		return "-j" + string(b), err == nil
	}
	return "", false // the token may have a MarshalJSON method, which would run before there is any limit
}

func decodeOwn(suffix string) (own any, ok bool) {
	if text, ok := strings.CutPrefix(suffix, "s"); ok {
		return text, true
	}
	text, ok := strings.CutPrefix(suffix, "j")
	return own, ok && json.Unmarshal([]byte(text), &own) == nil
}
