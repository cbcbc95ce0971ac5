package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// take handles data that the server has sent in a response: a message or a batch of messages. It returns true if
// the message of the exchange needs no more data, because it has been answered, has failed, or is sent again in a new
// session.
func (e *exchange) take(ctx context.Context, data []byte) (done bool) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, jsonrpc.ByteOrderMark))
	jsonrpc.OneLine(data)
	if len(data) > 0 && data[0] == '[' {
		return e.takeBatch(ctx, data)
	}
	m := jsonrpc.Parse(data)
	if m.Version == "2.0" && m.Method != "" {
		e.pass(m)
		return false
	}
	if m = jsonrpc.Normalize(m); m != nil {
		return e.answer(ctx, m)
	}
	if e.lastNonMessage = head(data); !e.isOpen() || !e.isMeantAsAnswer(data) {
		return false
	}
	e.refused(ctx)
	return true
}

// isMeantAsAnswer reports whether data, which is not a valid message, is an invalid answer to the message of the
// exchange.
func (e *exchange) isMeantAsAnswer(data []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields["method"] != nil { // Unmarshal fails also if a key occurs twice
		return false
	}
	m := &jsonrpc.Message{ID: fields["id"]}
	if fields["jsonrpc"] == nil && fields["result"] == nil && fields["error"] == nil && !jsonrpc.Alike(string(m.ID), string(e.m.ID)) {
		return false // such as a keep-alive
	}
	return e.owner(m) == string(e.m.ID)
}

// takeBatch handles the messages of a batch one by one, because hosts may not support batches. It drops items that are
// not objects. It returns true if take does for any of the others.
func (e *exchange) takeBatch(ctx context.Context, data []byte) (done bool) {
	for _, item := range jsonrpc.Parse(data).Items() {
		if len(item) > 0 && item[0] == '{' {
			done = e.take(ctx, item) || done
		}
	}
	return done
}

// owner returns the id of the request that the answer m belongs to, or "" if there is none. An answer in the response
// to a request belongs to that request, unless its id is that of another request in flight or of an abandoned one.
func (e *exchange) owner(m *jsonrpc.Message) string {
	own, id := string(e.m.ID), string(m.ID)
	if m.ID != nil && jsonrpc.Same(own, id) {
		return own
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if other, found := jsonrpc.Find(e.open, id); found != nil {
		return other
	}
	if jsonrpc.Alike(own, id) {
		return own
	}
	if e.m.IsRequest() && !e.resumed {
		if e.givenUp.Has(id) {
			return ""
		}
		return own
	}
	if other, found := jsonrpc.FindAlike(e.open, id); found != nil {
		return other
	}
	return ""
}

// answer forwards the answer m with the id of the request that it belongs to. The result means the same as that of
// take.
func (e *exchange) answer(ctx context.Context, m *jsonrpc.Message) (done bool) {
	switch owner := e.owner(m); {
	case owner == "" || owner == string(e.m.ID) && !e.isOpen():
		e.Log.Warn("the server sent an answer that belongs to no request", "answer", jsonrpc.Shorten(string(m.Raw)))
		return false
	case owner != string(e.m.ID):
		if owner != string(m.ID) {
			m = m.WithID(owner)
		}
		e.pass(m)
		return false
	}
	if e.renews(ctx, m) {
		return true
	}
	if !bytes.Equal(m.ID, e.m.ID) {
		m = m.WithID(string(e.m.ID))
	}
	e.mu.Lock()
	if e.m.Method != "initialize" {
		e.proved = e.proved || e.code < 300
	} else if m.Result != nil && !e.forgotten { // otherwise endUnused ends the new session, and the next run begins another
		var result struct{ ProtocolVersion string }
		_ = adapter.Unmarshal(m.Result, &result)
		e.remote.session, e.version, e.initialize = e.session, result.ProtocolVersion, e.m
	}
	e.mu.Unlock()
	e.pass(m)
	e.settled()
	return true
}

// pass forwards a message of the server that has arrived in the exchange.
func (e *exchange) pass(m *jsonrpc.Message) {
	if m.IsResponse() {
		e.mu.Lock()
		delete(e.open, string(m.ID))
		e.mu.Unlock()
	}
	if e.m.IsRequest() {
		m.About = string(e.m.ID)
	}
	e.Message(m)
}

// refused fails the message of the exchange, because the response, whose text is in lastNonMessage, has no valid
// answer. If the refusal means that the server no longer knows the session, the message is sent again instead; see
// renews.
func (e *exchange) refused(ctx context.Context) {
	if e.renews(ctx, nil) {
		return
	}
	switch said := jsonrpc.Shorten(strings.Join(strings.Fields(strings.TrimPrefix(e.lastNonMessage, string(jsonrpc.ByteOrderMark))), " ")); {
	case said == "":
		e.fail(ctx, fmt.Errorf("%s: the server answered with nothing", e.status))
	case e.code < 300:
		e.fail(ctx, fmt.Errorf("%s: the server answered with no JSON-RPC answer: %s", e.status, said))
	default:
		e.fail(ctx, fmt.Errorf("%s: %s", e.status, said))
	}
}

// fail answers the request of the exchange with err, unless it has been answered or cancelled. If the message is not a
// request, fail logs err, unless the server has accepted the message, which then needs no answer.
func (e *exchange) fail(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // cancelled, or the run is over
	case e.m.IsRequest():
		if e.isOpen() {
			e.pass(jsonrpc.Failure(e.m.ID, "mcpdeadline: "+err.Error()))
		}
	case e.code == 0 || e.code >= 300:
		e.Log.Warn("the server did not accept a message", "message", cmp.Or(e.m.Method, "an answer"), "error", err)
	}
}
