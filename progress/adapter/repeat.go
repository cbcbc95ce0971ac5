package adapter

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The bounds of answers.
const (
	maxAnswers     = 1000
	maxAnswerBytes = 16 << 20
	answersKept    = 10 * time.Minute
)

// answers holds the results of calls by their idempotency keys. Beyond its bounds it drops the oldest result of the
// client that takes the largest part of a bound. The zero answers is ready to use.
type answers struct {
	mu      sync.Mutex
	calls   map[[sha256.Size]byte]*answered
	ended   list.List // of *answered, the oldest first
	bytes   int
	clients map[string]*clientAnswers // the clients of the answers, by name
}

// clientAnswers are the answers of one client.
type clientAnswers struct {
	ended list.List // the client's part of answers.ended
	bytes int
}

func (c *clientAnswers) share() float64 {
	return max(float64(c.ended.Len())/maxAnswers, float64(c.bytes)/maxAnswerBytes)
}

// errRunning is the error of a repeated call whose client waits no longer, while the first call goes on.
var errRunning = errors.New("a call with the same idempotency key is still running: repeat it later")

// An answered is a call that has been answered, or is still running.
type answered struct {
	key    [sha256.Size]byte
	client string
	done   chan struct{} // closed when the call has ended
	kept   bool
	value  any
	size   int
	until  time.Time
	all    *list.Element // in answers.ended
	own    *list.Element // in clientAnswers.ended
}

// Repeat returns the result of call or, if the options have Idempotency and a call with the same
// [request.IdempotencyKey] in meta and the same content came before, the result of that call. If the earlier call is
// still running, Repeat waits for it. If ctx ends first, the error is the cause of ctx; if the client has to have an
// answer first, as the [policy.Budget] in meta says, the error says that the earlier call is still running. The result
// is kept unless ctx has ended, call has failed or panicked, or the result is nil, asks a person, is no JSON, has more
// than 16 MiB, or has the [toolcall.Outcome] of a call that was aborted, or that may have been stopped because its
// client would have given up. If the result is not kept, the next call with the key runs. Repeat waits for call, which
// has to end with ctx, for content to become JSON, and for the result to become JSON.
//
// The content, which is compared as JSON, identifies the request: the same key of another client, or with other
// content, counts as another key. The client is the principal or else the session of from, which is called only if
// there is a key; all clients with neither count as one. Repeat is safe for concurrent use.
func Repeat[R any](ctx context.Context, s *Server, meta map[string]any, from func() Caller, content any, call func() (R, error)) (R, error) {
	key, _ := meta[request.IdempotencyKey].(string)
	if s.answers == nil || key == "" {
		return call()
	}
	caller, wait := from(), ctx
	client := caller.owner(task.Plain)
	data, err := json.Marshal([]any{client, key, content})
	if err != nil {
		return call()
	}
	sum := sha256.Sum256(data)
	budget, _ := policy.ReadBudget(meta)
	if within, _ := budget.Answer(false); within.Left > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, within.Left, errRunning)
		defer cancel()
	}
	for {
		begun, entry := s.answers.begin(client, sum)
		if begun {
			keep := -1
			defer func() { s.answers.end(entry, keep) }() // after a panic too
			value, err := call()
			if err == nil && ctx.Err() == nil {
				entry.value = value
				keep = sizeToKeep(value, budget)
			}
			return value, err
		}
		select {
		case <-entry.done:
		case <-wait.Done():
			select {
			case <-entry.done: // wins over the end of ctx
			default:
				var none R
				return none, context.Cause(wait)
			}
		}
		if entry.kept {
			return entry.value.(R), nil // all calls of a server have results of one type
		}
	}
}

// begin returns the call with a key, and whether it begins now. begun is false if a call with the key is in progress,
// or its result is still kept.
func (a *answers) begin(client string, key [sha256.Size]byte) (begun bool, _ *answered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now())
	if entry := a.calls[key]; entry != nil {
		return false, entry
	}
	if a.calls == nil {
		a.calls = make(map[[sha256.Size]byte]*answered)
	}
	entry := &answered{key: key, client: client, done: make(chan struct{})}
	a.calls[key] = entry
	return true, entry
}

// sizeToKeep returns how many bytes a result takes, or a negative number if it must not be kept. The timeout of a
// client's budget is not kept, because the client may wait for longer when it asks again.
func sizeToKeep(result any, waits policy.Budget) int {
	data, err := json.Marshal(result)
	if err != nil || string(data) == "null" {
		return -1
	}
	var r struct {
		Type      string          `json:"resultType"`
		Questions json.RawMessage `json:"inputRequests"` // in the form of the SDKs for earlier protocols, without a type
		Meta      struct {
			Outcome struct {
				ExitCode int `json:"exitCode"`
			} `json:"io.github.tooldeadline/outcome"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(data, &r)
	code := r.Meta.Outcome.ExitCode
	if r.Type == "input_required" || r.Questions != nil || code == timeout.ExitAborted || code == timeout.ExitTimeout && waits != (policy.Budget{}) {
		return -1
	}
	return len(data)
}

// end keeps a call, or forgets it.
func (a *answers) end(entry *answered, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(entry.done)
	if size < 0 || size > maxAnswerBytes {
		delete(a.calls, entry.key)
		return
	}
	now := time.Now()
	entry.kept, entry.size, entry.until = true, size, now.Add(answersKept)
	client := a.clients[entry.client]
	if client == nil {
		if a.clients == nil {
			a.clients = make(map[string]*clientAnswers)
		}
		client = new(clientAnswers)
		a.clients[entry.client] = client
	}
	entry.all, entry.own = a.ended.PushBack(entry), client.ended.PushBack(entry)
	a.bytes += size
	client.bytes += size
	for a.ended.Len() > maxAnswers || a.bytes > maxAnswerBytes {
		a.forget(a.largestClient().ended.Front().Value.(*answered))
	}
}

// largestClient returns the client with the largest share.
func (a *answers) largestClient() (most *clientAnswers) {
	for _, c := range a.clients {
		if most == nil || c.share() > most.share() {
			most = c
		}
	}
	return most
}

// expire forgets answers that are too old.
func (a *answers) expire(now time.Time) {
	for e := a.ended.Front(); e != nil && !now.Before(e.Value.(*answered).until); e = a.ended.Front() {
		a.forget(e.Value.(*answered))
	}
}

// forget forgets an answer. A call that waits for it still gets it.
func (a *answers) forget(entry *answered) {
	a.ended.Remove(entry.all)
	a.bytes -= entry.size
	client := a.clients[entry.client]
	client.ended.Remove(entry.own)
	client.bytes -= entry.size
	if client.ended.Len() == 0 {
		delete(a.clients, entry.client)
	}
	delete(a.calls, entry.key)
}
