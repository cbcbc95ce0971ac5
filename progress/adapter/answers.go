package adapter

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
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
