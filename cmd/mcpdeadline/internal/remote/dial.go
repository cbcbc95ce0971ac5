package remote

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/stream"
)

// OrderLimit is the longest time that a message waits until the server has read the request, or accepted the
// notification, before it.
const OrderLimit = 10 * time.Second

// Dial returns a function that returns the dialer of a session with a server at a URL. The dialer does not connect to
// the server, which the first message of a run does. header is added to all requests. A message of the server has at
// most most bytes.
func Dial(transport http.RoundTripper, to *url.URL, header http.Header, most int) func() server.Dialer {
	client := &http.Client{
		Transport:     &stream.Notifications{Base: transport, Name: "notifications"},
		CheckRedirect: redirects(to),
	}
	return func() server.Dialer {
		h := new(handover)
		return func(r server.Receiver) (server.Run, error) {
			u := &remote{
				Receiver: r, handover: h, url: to, header: header, client: client, max: most, begun: time.Now(),
				queue: jsonrpc.NewMailbox(), over: make(chan struct{}), open: make(map[string]*posting),
			}
			u.ctx, u.stop = context.WithCancelCause(context.Background())
			u.posts.Add(1)
			go u.postAll()
			go func() {
				<-u.ctx.Done()
				for _, m := range u.queue.Close() {
					u.missed(m)
				}
				u.posts.Wait()
				close(u.over)
			}()
			return u, nil
		}
	}
}

func (u *remote) Send(m *jsonrpc.Message) {
	if !u.cancelUnread(m) && !u.queue.Put(m, 0) {
		u.missed(m)
	}
}

func (u *remote) Await() { u.queue.Await(jsonrpc.QueueOf(u.max)) }

func (u *remote) Kill(why error) { u.stop(why) }

func (u *remote) Ended() <-chan struct{} { return u.over }

func (u *remote) Why() error { return context.Cause(u.ctx) }

func (u *remote) Processes() server.Observable { return nil }

// errClosed ends a run that Close has ended.
var errClosed = errors.New("mcpdeadline is shutting down")

// Close implements [server.Run]. It ends all sessions at the server that this run and earlier ones have begun, and
// waits for that, and for the end of the run, up to server.CloseLimit. A session that is being begun has half of that
// time: if the answer to initialize is not awaited, nobody can end that session.
func (u *remote) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), server.CloseLimit)
	defer cancel()
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	begun := make(chan struct{})
	go func() {
		u.beginning.Wait()
		close(begun)
	}()
	select {
	case <-begun:
	case <-time.After(server.CloseLimit / 2):
	}
	u.mu.Lock()
	session := u.session
	if u.forgotten {
		session = ""
	}
	u.mu.Unlock()
	u.endSession(session)
	u.endTrial(u.handover.trial.Swap(nil))
	u.handover.await(ctx)
	u.stop(errClosed)
	select {
	case <-u.over:
	case <-ctx.Done():
	}
	u.handover.await(ctx) // exchanges may have ended sessions when they ended
}

// postAll sends the queued messages, in order, until the run ends. Before it sends the next message, it waits until a
// request has been written, or another message has been accepted, but no longer than OrderLimit. For initialize it
// waits for the answer, but no longer than InitLimit.
func (u *remote) postAll() {
	defer u.posts.Done()
	for {
		select { // a message that is sent after the end of ctx fails
		case <-u.queue.More:
		case <-u.ctx.Done():
			return
		}
		m := u.queue.Next()
		u.queue.Sent() // frees its room in the queue
		if m == nil || u.cancelByClosing(m) || u.adoptTrial(m) {
			continue
		}
		e := &exchange{remote: u, m: m}
		if !e.begin() {
			continue
		}
		ctx, cancel := context.WithCancel(u.ctx)
		sent := &posting{m: m, cancel: cancel, written: make(chan struct{})}
		e.settled = sync.OnceFunc(func() {
			if close(sent.written); m.Method == "initialize" {
				u.beginning.Done()
			}
		})
		limit := OrderLimit
		switch {
		case !m.IsRequest():
		case m.Method == "initialize": // its answer has the session id, which later requests need
			limit = server.InitLimit
		default:
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { e.settled() }})
		}
		if m.IsRequest() {
			u.mu.Lock()
			u.open[string(m.ID)] = sent
			u.mu.Unlock()
		}
		u.posts.Add(1)
		go func() {
			defer u.posts.Done()
			defer e.settled()
			defer e.answered()
			defer u.giveUp(sent)
			defer cancel()
			e.post(ctx)
		}()
		select {
		case <-sent.written:
		case <-time.After(limit):
		case <-u.ctx.Done():
		}
	}
}

// giveUp records that the exchange of a request has ended. If the request has no answer yet, it is abandoned.
func (u *remote) giveUp(sent *posting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sent.late != nil {
		sent.late.Stop()
	}
	if id := string(sent.m.ID); u.open[id] == sent { // a later request may have the same id
		u.abandonRequest(id)
	}
}

// cancelUnread handles m if it cancels a request. It removes the request from the queue and returns true: then the
// server gets neither. If the request is not queued, but has not been written yet, cancelUnread ends its exchange, because
// later messages, among them m, wait for it.
func (u *remote) cancelUnread(m *jsonrpc.Message) (removed bool) {
	id := jsonrpc.Cancels(m)
	if id == "" {
		return false
	}
	if u.queue.Remove(func(q *jsonrpc.Message) bool {
		return q.IsRequest() && q.Method != "initialize" && jsonrpc.Same(string(q.ID), id)
	}) {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.givenUp.Add(id) // an answer may still arrive, also on the stream of another request
	if _, sent := jsonrpc.Find(u.open, id); sent != nil && sent.m.Method != "initialize" {
		select {
		case <-sent.written:
		default:
			sent.cancel()
		}
	}
	return false
}

// cancelByClosing cancels the request that m cancels by closing its stream, as protocol 2026-07-28 requires. It returns
// true, and does nothing, if m cancels no open request of that protocol. It returns false if m is to be sent as a
// message, because it is not a cancellation or the session has an earlier protocol; the stream of the request then
// stays open for AcceptLimit, or for m.Awaited if that is longer: many servers neither answer such a request nor close
// its stream.
func (u *remote) cancelByClosing(m *jsonrpc.Message) bool {
	id := jsonrpc.Cancels(m)
	u.mu.Lock()
	defer u.mu.Unlock()
	if id == "" {
		return m.Method == "notifications/cancelled" && u.version == ""
	}
	id, sent := jsonrpc.Find(u.open, id)
	if u.version != "" && sent != nil && sent.late == nil && sent.m.Method != "initialize" {
		sent.late = time.AfterFunc(max(AcceptLimit, m.Awaited), sent.cancel)
	}
	if u.version != "" || sent == nil {
		return u.version == ""
	}
	u.abandonRequest(id)
	sent.cancel()
	return true
}
