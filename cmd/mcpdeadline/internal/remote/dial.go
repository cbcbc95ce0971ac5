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

// OrderLimit is how long the next message waits until the server has read a request, or accepted a notification.
const OrderLimit = 10 * time.Second

// CancelledLimit is how long a stream stays open for the answer to a request that was cancelled. Many servers neither
// answer such a request nor close its stream.
const CancelledLimit = 10 * time.Minute

// Dial returns a function that makes the dialer of each session with a server at a URL. A message has up to most bytes.
// The first message of a run makes the connection.
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
				u.unsendAll()
				u.posts.Wait()
				close(u.over)
			}()
			return u, nil
		}
	}
}

func (u *remote) Send(m *jsonrpc.Message) {
	u.cancelUnread(m)
	if !u.queue.Put(m, 0) {
		u.missed(m)
	}
}

func (u *remote) Await() { u.queue.Await(jsonrpc.QueueOf(u.max)) }

func (u *remote) Kill(why error) { u.stop(why) }

func (u *remote) Ended() <-chan struct{} { return u.over }

func (u *remote) Why() error { return context.Cause(u.ctx) }

func (u *remote) Processes() server.Observable { return nil }

// Close ends the session at the server.
func (u *remote) Close() {
	u.mu.Lock()
	session := u.session
	u.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(u.ctx, server.CloseLimit)
		defer cancel()
		if res, err := u.do(ctx, http.MethodDelete, nil, nil); err == nil {
			res.Body.Close()
		}
	}
	u.stop(errors.New("mcpdeadline is shutting down"))
}

// postAll sends the messages in order. It waits until a request has been written, or a notification
// accepted, but for no longer than OrderLimit, or InitLimit for initialize, before it sends the next.
func (u *remote) postAll() {
	defer u.posts.Done()
	for {
		select {
		case <-u.queue.More:
		case <-u.ctx.Done():
			return
		}
		m := u.queue.Next()
		u.queue.Sent() // it is no longer waited for
		if m == nil || u.cancelByClosing(m) || u.adoptTrial(m) {
			continue
		}
		e := &exchange{remote: u, m: m}
		if !e.begin() {
			continue
		}
		ctx, cancel := context.WithCancel(u.ctx)
		sent := &posting{m: m, cancel: cancel, written: make(chan struct{})}
		e.settled = sync.OnceFunc(func() { close(sent.written) })
		late := time.NewTimer(OrderLimit)
		switch {
		case !m.IsRequest():
		case m.Method == "initialize": // its answer has the session id, which later requests need
			late.Reset(server.InitLimit)
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
		case <-late.C:
		case <-u.ctx.Done():
		}
		late.Stop()
	}
}

// giveUp records that an exchange has ended, so that a request without an answer gets none any more.
func (u *remote) giveUp(sent *posting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sent.late != nil {
		sent.late.Stop()
	}
	if id := string(sent.m.ID); u.open[id] == sent { // and not a later request with the same id
		u.abandonRequest(id)
	}
}

// cancelUnread ends the exchange of a request that a message cancels, if the server has not read it: later messages
// wait for it.
func (u *remote) cancelUnread(m *jsonrpc.Message) {
	id := jsonrpc.Cancels(m)
	if id == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.givenUp.Add(id) // even if one has just come on the stream of another request: another may follow
	if _, sent := jsonrpc.Find(u.open, id); sent != nil && !sent.isWritten() && sent.m.Method != "initialize" {
		sent.cancel()
	}
}

// cancelByClosing cancels a request by closing its stream, as 2026-07-28 requires. It reports false if m has to
// be sent as a message instead.
func (u *remote) cancelByClosing(m *jsonrpc.Message) bool {
	id := jsonrpc.Cancels(m)
	u.mu.Lock()
	defer u.mu.Unlock()
	if id == "" {
		return m.Method == "notifications/cancelled" && u.version == ""
	}
	id, sent := jsonrpc.Find(u.open, id)
	if u.version != "" && sent != nil && sent.late == nil && sent.m.Method != "initialize" {
		sent.late = time.AfterFunc(CancelledLimit, sent.cancel)
	}
	if u.version != "" || sent == nil {
		return u.version == ""
	}
	u.abandonRequest(id)
	sent.cancel()
	return true
}
