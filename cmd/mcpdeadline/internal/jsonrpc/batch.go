package jsonrpc

import (
	"encoding/json"
	"sync"
)

// Batches handles the batches of a host: arrays of messages, which hosts of protocol 2025-03-26 may send. Each message
// is handled by itself, so that each request has its own limit, and the answers are collected, because the host expects
// one array of them.
type Batches struct {
	Send func(*Message) // sends a message to the host

	mu   sync.Mutex
	open map[string]*batch // by the ids of the requests without an answer
}

// A batch holds the answers to the requests of one batch. The mu of Batches guards it.
type batch struct {
	waits   int // number of requests without an answer, and 1 more until Take has passed all messages
	answers []json.RawMessage
}

// Take calls pass for each message of a batch. An item that is not a message, or an empty batch, is answered with an
// error.
func (b *Batches) Take(items []json.RawMessage, pass func(*Message)) {
	if len(items) == 0 {
		b.Send(noMessage())
		return
	}
	one := &batch{waits: 1} // 1 for this function, so that the answers are not sent before all messages were passed
	for _, item := range items {
		m := Parse(item)
		switch {
		case len(item) == 0 || item[0] != '{' || !m.IsRequest() && !m.IsNotification() && !m.IsResponse():
			b.mu.Lock()
			one.answers = append(one.answers, noMessage().Raw)
			b.mu.Unlock()
			continue
		case m.IsRequest():
			b.mu.Lock()
			if _, open := Find(b.open, string(m.ID)); open == nil {
				if b.open == nil {
					b.open = make(map[string]*batch)
				}
				b.open[string(m.ID)] = one
				one.waits++
			}
			b.mu.Unlock()
		}
		pass(m)
	}
	b.answered(one, nil)
}

// Gather sends a message to the host or, if it is an answer to a request of a batch, keeps it until the batch has all
// its answers.
func (b *Batches) Gather(m *Message) {
	if !m.IsResponse() || !b.end(m.ID, m.Raw) {
		b.Send(m)
	}
}

// Forgo records that a request will not be answered, so that its batch does not wait for the answer.
func (b *Batches) Forgo(id json.RawMessage) { b.end(id, nil) }

// end records the answer to a request of a batch; a nil answer means that there will be none. It reports whether the
// request belongs to a batch.
func (b *Batches) end(id, answer json.RawMessage) bool {
	b.mu.Lock()
	key, one := Find(b.open, string(id))
	delete(b.open, key)
	b.mu.Unlock()
	if one != nil {
		b.answered(one, answer)
	}
	return one != nil
}

// answered records the answer, if it is not nil, to one request of a batch. If it was the last, answered sends all
// answers.
func (b *Batches) answered(one *batch, answer json.RawMessage) {
	b.mu.Lock()
	if answer != nil {
		one.answers = append(one.answers, answer)
	}
	one.waits--
	whole := one.waits == 0 && len(one.answers) > 0
	b.mu.Unlock()
	if whole {
		b.Send(Parse(Encode(one.answers)))
	}
}

func noMessage() *Message { return Refusal(nil, Error{InvalidRequest, "no message"}) }
