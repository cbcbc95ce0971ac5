package adapter

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// seenWait is how long a question waits for a sign that the client has got the handle.
const seenWait = time.Second

// Await waits under limits for the reply to a request that a tool, called in the given session, sends to its client. An
// elicitation/create waits under [progress.Await] with its message, or, if it sends the person to a site, under
// [progress.AwaitReply], whose messages name the host of the site. Any other method waits under AwaitReply; its
// message and site are ignored. After the handle of a task or a continuation the client no longer waits for the
// answer to the call, so the limits are those for a client that follows the progress.
func Await[T any](ctx context.Context, session any, method, message, site string, wait progress.Wait, ask func(context.Context) (T, error)) (T, error) {
	if id, _ := TaskOf(ctx, session).handed(); id != "" {
		ctx = pulse.Listened(ctx)
	}
	what := "a reply to " + method
	switch method {
	case "elicitation/create":
		if site == "" {
			return progress.Await(ctx, message, wait, ask)
		}
		what = "a person to finish at another site: " + message
		if u, err := url.Parse(site); err == nil && u.Host != "" {
			what = "a person to finish at " + u.Host + ": " + message
		}
	case "sampling/createMessage":
		what = "an answer of the model"
	case "roots/list":
		what = "the client's list of roots"
	}
	return progress.AwaitReply(ctx, what, wait, ask)
}

// Ask calls send, which sends a question of the tool to its client as a request of its own, and returns the error of
// send. id is that of the task, and form that of the handle that the client has been given; before a handle they are ""
// and [task.Plain]. The status of a task is input_required while send runs. After a handle of protocol 2025-11-25, Ask
// first waits until the client has asked for the task or a second has passed since the handle, because the question may
// overtake the handle, and a client that does not know the task yet cannot match it. If ctx ends first, the error is the
// cause of ctx. Ask itself waits for send, and does not hold the idle check: call it under [Await].
//
// fetching, which is nil before a handle, returns the context of a request to this process that waits for the result: a
// tasks/result or a call of the wait tool. If there is no such request, fetching waits for one; if ctx ends first, the
// error is the cause of ctx. Over HTTP the stream of such a request may be the only one on which a question can be sent.
func (t *Task) Ask(ctx context.Context, send func(id string, form task.Form, fetching func() (context.Context, error)) error) error {
	if t == nil {
		return send("", task.Plain, nil)
	}
	more := func(n int) {
		t.change(func(s *state) { s.asking += n })
		if id, _ := t.handed(); id != "" {
			t.tell(context.WithoutCancel(ctx))
		}
	}
	more(1)
	defer more(-1)
	id, form := t.handed()
	if id == "" {
		return send("", task.Plain, nil)
	}
	if form == task.Legacy {
		left := max(time.Until(t.now().since.Add(seenWait)), 0)
		if err := t.until(ctx, left, func(s *state) bool { return s.seen }); err != nil {
			return err
		}
	}
	return send(id, form, func() (fetch context.Context, _ error) {
		err := t.until(ctx, -1, func(s *state) bool {
			for c := range s.fetching {
				if (*c).Err() == nil {
					fetch = *c
					return true
				}
			}
			return false
		})
		return fetch, err
	})
}

// fetch records that a request waits for the result, until leave is called.
func (t *Task) fetch(ctx context.Context) (leave func()) {
	t.change(func(s *state) {
		if s.fetching == nil {
			s.fetching = make(map[*context.Context]struct{})
		}
		s.fetching[&ctx] = struct{}{}
	})
	return func() { t.change(func(s *state) { delete(s.fetching, &ctx) }) }
}

// ask puts the questions of a result to the client, and returns the answers by the tool's keys.
func (t *Task) ask(questions map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	// The keys of a task are used once. Before the handle the client may have had questions
	// of the same names, so the first round has a number too.
	var prefix string
	limited, cancel := context.WithTimeout(t.ctx, t.core.Retention)
	record, err := t.persist(limited, func(r *task.Record) {
		r.Round++
		prefix = strconv.Itoa(r.Round) + "."
		r.Questions = make(map[string]json.RawMessage, len(questions))
		for key, q := range questions {
			r.Questions[prefix+key] = q
		}
		r.Status, r.Updated = task.InputRequired, time.Now()
	}, nil)
	cancel()
	if err != nil {
		return nil, err
	}
	return progress.Await(pulse.Listened(t.ctx), "an answer", t.call.await, func(ctx context.Context) (map[string]json.RawMessage, error) {
		try := newAttempts()
		for len(record.Questions) > 0 {
			next, err := t.core.Store.Wait(ctx, t.run.Owner, record.ID, record.Revision)
			switch {
			case err != nil && !try.wait(ctx):
				return nil, context.Cause(ctx)
			case err != nil:
				continue
			case next.Status.Final():
				return nil, ended(&next)
			}
			record = next
			try.reset()
		}
		answers := make(map[string]json.RawMessage, len(record.Answers))
		for key, a := range record.Answers {
			answers[strings.TrimPrefix(key, prefix)] = a
		}
		limited, cancel := context.WithTimeout(t.ctx, t.core.Retention)
		defer cancel()
		_, err := t.persist(limited, func(r *task.Record) { r.Answers = nil }, nil)
		return answers, err
	})
}

// respond moves answers from a client to the answers of the record, where the run reads them. It drops answers to
// other questions, and reports whether it has moved any.
func respond(r *task.Record, answers map[string]json.RawMessage) bool {
	var questions, given map[string]json.RawMessage
	for key, a := range answers {
		if _, ok := r.Questions[key]; !ok {
			continue
		}
		if questions == nil {
			questions, given = maps.Clone(r.Questions), maps.Clone(r.Answers)
			if given == nil {
				given = make(map[string]json.RawMessage)
			}
		}
		delete(questions, key)
		given[key] = a
	}
	if questions == nil { // as it is where the task is final
		return false
	}
	r.Questions, r.Answers, r.Updated = questions, given, time.Now()
	if len(questions) == 0 {
		r.Status, r.Questions = task.Working, nil
	}
	return true
}
