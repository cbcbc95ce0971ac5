package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A nap is the sleep of a server that nobody has used for a while: it has no process, and the host does not
// notice. It begins before the server's stdin is closed, so that whatever the host sends from then on waits
// for the next run, and ends when that is ready. It is guarded by the session's lock.
type nap struct {
	run   int // the run that has fallen asleep
	begun time.Time
	lists map[wanted][]page // as they were then
	wake  chan struct{}     // closed when a message needs the server
	woken time.Time         // when that was; zero before
	cause string            // method of that message
}

// errWoken reports that a run ended because it fell asleep, and that it is needed again.
var errWoken = errors.New("the server slept")

// watch waits for the end of a run. If ctx ends first, it closes the run and returns nil. A run that nobody
// has used for the time of -hibernate is closed, and watch returns errWoken when it is needed again.
func (s *session) watch(ctx context.Context, up upstream) error {
	var tired <-chan time.Time
	if s.hibernate > 0 {
		timer := time.NewTimer(s.hibernate)
		defer timer.Stop()
		tired = timer.C
		for {
			select {
			case <-up.ended():
				return up.why()
			case <-ctx.Done():
				up.close()
				return nil
			case <-tired:
			}
			n, again := s.fallAsleep(ctx, up)
			if n != nil {
				up.close() // that the server may have ended by itself meanwhile is no crash
				return s.sleep(ctx, n)
			}
			timer.Reset(again)
		}
	}
	select {
	case <-up.ended():
		return up.why()
	case <-ctx.Done():
		up.close()
		return nil
	}
}

// fallAsleep marks the server as asleep if nobody has used it for long enough and nothing is open. Otherwise
// it returns after which time to try again.
func (s *session) fallAsleep(ctx context.Context, up upstream) (_ *nap, again time.Duration) {
	s.mu.Lock()
	left, open, uses := s.hibernate-time.Since(s.used), s.open(), s.uses
	all := make(map[wanted]bool, len(s.wanted))
	for w := range s.wanted {
		all[w] = true
	}
	s.mu.Unlock()
	switch {
	case left > 0:
		return nil, left
	case open: // its end will be a use
		return nil, s.hibernate
	}
	// Many servers change a list without a word, so the lists are asked for now, and not remembered from
	// when the host has asked.
	lists, answered := s.fetchLists(ctx, up, all)
	if !answered { // it is busy, or has ended
		return nil, s.hibernate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses != uses || s.open() {
		return nil, max(s.hibernate-time.Since(s.used), s.hibernate/8)
	}
	n := &nap{run: s.run, begun: time.Now(), lists: lists, wake: make(chan struct{})}
	s.nap, s.up, s.ready = n, nil, false
	return n, 0
}

// sleep waits until the server is needed. It returns errWoken then, and nil if ctx ends first. On the page
// of -inspect the sleep is an execution; to abort it wakes the server.
func (s *session) sleep(ctx context.Context, n *nap) error {
	name := "the server"
	if len(s.command) > 0 {
		name = filepath.Base(s.command[0])
	}
	s.logger.Info("server asleep", "unused", s.hibernate)
	s.log.server(s.name, "asleep", n)
	_ = timeout.Run(ctx, func(ctx context.Context) error {
		heartbeat.BeatWith(ctx, "asleep; the next request wakes it")
		select {
		case <-n.wake:
		case <-ctx.Done():
		}
		return nil
	}, timeout.WithName(name), timeout.WithOperation(timeout.OperationCommand), timeout.Config{})
	if ctx.Err() != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rouse("")
	return errWoken
}

// rouse wakes a server that sleeps, for a message with this method. The caller holds s.mu.
func (s *session) rouse(method string) {
	if n := s.nap; n != nil && n.woken.IsZero() {
		n.woken, n.cause = time.Now(), method
		close(n.wake)
	}
}

// sleepsOn reports whether a message leaves a server that sleeps asleep: it concerns an earlier run only, or
// something that the next run requests anyway. The caller holds s.mu.
func (s *session) sleepsOn(m *message) bool {
	if s.nap == nil || !s.nap.woken.IsZero() || !m.isNotification() {
		return false
	}
	switch m.Method {
	case "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed", "notifications/initialized":
		return true
	}
	return false
}

// answerAsleep returns the answer to a request for a list that a server which sleeps is not needed for, or nil.
func (s *session) answerAsleep(m *message) *message {
	s.mu.Lock()
	if s.nap == nil || s.over {
		s.mu.Unlock()
		return nil
	}
	var answer *message
	if listOf(m.Method) != "" {
		w, cursor := wants(m)
		for _, p := range s.nap.lists[w] {
			if p.cursor == cursor {
				answer = result(m.ID, p.result)
			}
		}
	}
	s.mu.Unlock()
	if answer == nil {
		return nil
	}
	answer = s.amend(m.Method, answer)
	answer.ID, answer.about = m.ID, string(m.ID)
	return answer
}

// listChanged notes the server's notification that a list has changed. A list that changes while the server
// falls asleep is forgotten.
func (s *session) listChanged(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++ // no use, but the lists that were fetched are old
	if s.nap == nil {
		return
	}
	for w := range s.nap.lists {
		if strings.HasPrefix(method, "notifications/"+listOf(w.method)+"/") {
			delete(s.nap.lists, w)
		}
	}
}

// awake is called when a run is ready after a sleep. It tells the host about lists that are not as they were.
func (s *session) awake(ctx context.Context, up upstream, n *nap) {
	s.logger.Info("server awake", "after", time.Since(n.woken).Round(time.Millisecond), "for", n.cause)
	s.log.server(s.name, "awake", n)
	all := make(map[wanted]bool, len(n.lists))
	for w := range n.lists {
		all[w] = true
	}
	go func() {
		lists, answered := s.fetchLists(ctx, up, all)
		s.mu.Lock()
		s.comparing = false
		current := s.up == up
		s.mu.Unlock()
		if !current {
			return // it has ended, and the host gets a notification of every list
		}
		told := make(map[string]bool)
		for w := range all {
			if list := listOf(w.method); (!answered || !sameList(w.method, n.lists[w], lists[w])) && !told[list] {
				told[list] = true
				s.deliver(notification(fmt.Sprintf("notifications/%s/list_changed", list), nil))
			}
		}
	}()
}

// A serverLine is the record of a server that has fallen asleep or is awake again.
type serverLine struct {
	Time    time.Time `json:"time"`
	Server  string    `json:"server"` // asleep or awake
	Session string    `json:"session"`
	Slept   float64   `json:"sleptMs,omitempty"`
	Waking  float64   `json:"wakingMs,omitempty"` // until it was initialised
	Cause   string    `json:"for,omitempty"`      // method of the message that woke it
}

// server writes a line about a server that has fallen asleep or is awake again.
func (l *callLog) server(session, state string, n *nap) {
	if l == nil {
		return
	}
	line := serverLine{Time: time.Now(), Server: state, Session: session}
	if state == "awake" && !n.woken.IsZero() { // before, a request may be about to set it
		line.Slept, line.Waking, line.Cause = millis(n.woken.Sub(n.begun)), millis(line.Time.Sub(n.woken)), n.cause
	}
	raw, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	l.put(raw)
}
