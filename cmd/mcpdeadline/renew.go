package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"
)

// renewLimit is how long the server may take to begin a session on trial.
const renewLimit = 10 * time.Second

// errForgotten ends a run whose session the server no longer knows.
var errForgotten = errors.New("the server no longer knows the session")

// renews has the message sent again in a new session if the server has refused it because it no longer knows
// this one. answer is the server's answer, or nil if e.said has what came. The standard's word for that is 404.
// Others count if a new session proves to be what helps: if the server begins one, with the same headers.
// A message is sent again once only.
func (e *exchange) renews(ctx context.Context, answer *message) bool {
	if e.session == "" || e.m.renewed || e.m.Method == "initialize" || !e.mayForget(answer) {
		return false
	}
	e.renewing.Lock()
	defer e.renewing.Unlock()
	switch {
	case e.ctx.Err() != nil:
		if context.Cause(e.ctx) != errForgotten {
			return false
		}
	case ctx.Err() != nil || !e.worth():
		return false
	case e.code != http.StatusNotFound && !e.begins(ctx):
		return false
	}
	if e.m.isRequest() {
		e.m.renewed = true
		e.unsent(e.m)
		e.mu.Lock()
		delete(e.open, string(e.m.ID))
		e.mu.Unlock()
	}
	e.stop(errForgotten)
	return true
}

// worth reports whether a new session is worth a try: the server has accepted something in this one, or it is
// not new any more. Otherwise a server that forgets every session would get one for each message.
func (e *exchange) worth() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proved || time.Since(e.begun) > lasted
}

// forgotten matches what servers say of a session that they do not know. Many say it with a status of their own
// choice.
var forgotten = regexp.MustCompile(`(?i)mcp-?session-?id` +
	`|\b(no|not an?|invalid|bad|unknown|expired|missing|stale|inactive|terminated|unrecogni[sz]ed|(could|can) ?not find|couldn't find|can't find)` +
	`( or \w+)?( (the|an?|your|this|valid|active|such|existing|known|mcp))* session` +
	`|\bsession[^.;{}]{0,60}(\bnot?\b|n't\b|expired|invalid|unknown|missing|required|terminated|closed|gone|lost|stale|ended|inactive|timed out)` +
	`|\bsession[ _-]?(id)?[ _-]?(not[ _-]?found|expired|unknown|invalid|terminated|closed|missing)` +
	`|\bno (\w+ )?(transport|connection|server)( \w+)? for (the |this )?session` +
	`|\b(server|client|connection|transport) not initiali[sz]ed\b|\bexpect(ed|s)?( an?)? initiali[sz]e request\b`)

// Error codes of JSON-RPC for a request that the server has read.
const (
	methodNotFound = -32601
	invalidParams  = -32602
)

// mayForget reports whether the answer may mean that the server does not know the session.
func (e *exchange) mayForget(answer *message) bool {
	said := e.said
	if answer != nil {
		if said = string(answer.Error); answer.Error == nil {
			return false
		}
	}
	switch {
	case e.code == http.StatusNotFound, e.code == http.StatusGone:
		return true
	case e.code == http.StatusUnauthorized && !e.auth:
		return true
	case e.code < 300 && answer != nil && same(string(answer.ID), string(e.m.ID)):
		return false // the server has read the request
	}
	var failed struct{ Code int }
	if answer != nil && json.Unmarshal(answer.Error, &failed) == nil && (failed.Code == methodNotFound || failed.Code == invalidParams) {
		return false
	}
	return forgotten.MatchString(said)
}

// begins reports whether the server begins a session, which it ends again: the next run begins its own.
func (e *exchange) begins(ctx context.Context) bool {
	e.mu.Lock()
	initialize := e.initialize
	e.mu.Unlock()
	if initialize == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	trial := &remote{
		receiver: receiver{run: e.run, log: e.log, message: func(*message) {}},
		url:      e.url, header: e.header, client: e.client, max: e.max,
		open: map[string]context.CancelFunc{string(initialize.ID): cancel},
	}
	trial.ctx, trial.stop = context.WithCancelCause(ctx)
	defer trial.stop(nil)
	begun := false
	trial.message = func(m *message) { begun = begun || m.isResponse() && m.Result != nil }
	(&exchange{remote: trial, m: initialize, settled: cancel}).post(ctx)
	if trial.session != "" {
		end, cancel := context.WithTimeout(e.ctx, closeLimit)
		defer cancel()
		if res, err := trial.do(end, http.MethodDelete, nil, nil); err == nil {
			res.Body.Close()
		}
	}
	return begun && trial.session != ""
}
