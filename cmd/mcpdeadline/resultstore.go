package main

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
)

// maxKeptResults is how many bytes of results are kept, of all sessions.
const maxKeptResults = 64 << 20

// A resultStore keeps results that were cut. It belongs to the proxy, so that they survive the server. It is
// bounded in bytes: the oldest goes first. It is safe for concurrent use.
type resultStore struct {
	cutting sync.Mutex // held while a result is cut
	most    int        // bytes

	mu    sync.Mutex
	size  int
	order list.List // of *keptResult, the oldest first
	byID  map[string]*list.Element
	same  map[resultSum]*list.Element
}

type keptResult struct {
	id   string
	text string
	sum  resultSum
}

// A resultSum names a text of a session.
type resultSum struct {
	of  *session
	sum [sha256.Size]byte
}

// keep returns the id under which a text can be read. The same text of a session has one id: a host that
// polls a task gets its result many times. An id is random, so that one of an earlier session, or of another
// server, is not taken for this one's.
func (r *resultStore) keep(s *session, owner, text string) (id string) {
	sum := resultSum{s, sha256.Sum256([]byte(text))}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.same[sum]; e != nil {
		r.order.MoveToBack(e)
		return e.Value.(*keptResult).id
	}
	if r.byID == nil {
		r.byID, r.same = make(map[string]*list.Element), make(map[resultSum]*list.Element)
	}
	random := rand.Text()
	if s.name != "" { // otherwise the id alone decides who may read it
		random = random[:8]
	}
	id = owner + ".r" + strings.ToLower(random)
	e := r.order.PushBack(&keptResult{id, text, sum})
	r.byID[id], r.same[sum] = e, e
	r.size += len(text)
	for r.size > r.most && r.order.Len() > 1 {
		r.drop(r.order.Front())
	}
	return id
}

// get returns a text of a session.
func (r *resultStore) get(s *session, id string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byID[id]
	if e == nil || e.Value.(*keptResult).sum.of != s {
		return "", false
	}
	return e.Value.(*keptResult).text, true
}

// drop removes a text. The caller holds r.mu.
func (r *resultStore) drop(e *list.Element) {
	k := r.order.Remove(e).(*keptResult)
	r.size -= len(k.text)
	delete(r.byID, k.id)
	delete(r.same, k.sum)
}

// forget drops the texts of a session that has ended.
func (r *resultStore) forget(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.order.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*keptResult).sum.of == s {
			r.drop(e)
		}
		e = next
	}
}
