package task

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
)

// How long a question waits for a sign that the client has got the handle.
const seenWait = time.Second

// InputRequired makes the status of a task input_required until done is called, for a question
// that is sent to the client as a request of its own (Legacy). It holds no idle check:
// ask under [progress.Await].
func (r *Run) InputRequired(ctx context.Context) (done func()) {
	if r == nil {
		return func() {}
	}
	r.askMore(ctx, 1)
	return sync.OnceFunc(func() { r.askMore(ctx, -1) })
}

func (r *Run) askMore(ctx context.Context, n int) {
	r.mu.Lock()
	r.asking += n
	is := r.state == handed
	r.mu.Unlock()
	if is {
		_ = r.tell(context.WithoutCancel(ctx))
	}
}

// Seen waits until the client has asked for the task, or a second has passed since its handle, or
// ctx ends. A question that is sent as a request of its own may overtake the handle, and a client
// that does not know the task yet cannot match it.
func (r *Run) Seen(ctx context.Context) error {
	if _, is := r.Handed(); !is {
		return nil
	}
	wait := time.NewTimer(time.Until(r.created.Add(seenWait)))
	defer wait.Stop()
	select {
	case <-r.seen:
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (r *Run) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.wasSeen {
		r.wasSeen = true
		close(r.seen)
	}
}

// Fetching returns the context of a tasks/result of this process that waits for the task; it waits
// for one until ctx ends. Over HTTP a question may have no other stream to go out on.
func (r *Run) Fetching(ctx context.Context) (context.Context, error) {
	for {
		var fetched chan struct{}
		if r != nil {
			r.mu.Lock()
			for c := range r.fetching {
				if (*c).Err() == nil {
					r.mu.Unlock()
					return *c, nil
				}
			}
			if r.fetched == nil {
				r.fetched = make(chan struct{})
			}
			fetched = r.fetched
			r.mu.Unlock()
		}
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fetch says that a tasks/result waits, until leave is called.
func (r *Run) fetch(ctx context.Context) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fetching == nil {
		r.fetching = make(map[*context.Context]struct{})
	}
	r.fetching[&ctx] = struct{}{}
	if r.fetched != nil {
		close(r.fetched)
		r.fetched = nil
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.fetching, &ctx)
	}
}

// ask puts the questions of a result to the client, and returns the answers by the tool's keys.
func (r *Run) ask(questions map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	// The keys of a task are used once. Before the handle the client may have had questions
	// of the same names, so the first round has a number too.
	var prefix string
	record, err := r.change(func(record *Record) bool {
		record.Round++
		prefix = strconv.Itoa(record.Round) + "."
		record.Questions = make(map[string]json.RawMessage, len(questions))
		for key, q := range questions {
			record.Questions[prefix+key] = q
		}
		record.Status, record.Updated = InputRequired, time.Now()
		return true
	})
	if err != nil {
		return nil, err
	}
	return progress.Await(r.ctx, "an answer", func(ctx context.Context) (map[string]json.RawMessage, error) {
		var wait backoff
		for len(record.Questions) > 0 {
			next, err := r.tasks.store.Wait(ctx, r.owner, r.id, record.Revision)
			switch {
			case err != nil && !wait.sleep(ctx):
				return nil, context.Cause(ctx)
			case err != nil:
				continue
			case next.Status.Final():
				return nil, next.ended()
			}
			record = next
			wait.reset()
		}
		answers := make(map[string]json.RawMessage, len(record.Answers))
		for key, a := range record.Answers {
			answers[strings.TrimPrefix(key, prefix)] = a
		}
		_, err := r.change(func(record *Record) bool {
			record.Answers = nil
			return true
		})
		return answers, err
	}, r.call.Await...)
}

// respond moves answers to where the run takes them. Those to no question are dropped.
func (r *Record) respond(answers map[string]json.RawMessage) bool {
	var questions, given map[string]json.RawMessage
	for key, a := range answers {
		if _, is := r.Questions[key]; !is {
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
		r.Status, r.Questions = Working, nil
	}
	return true
}
