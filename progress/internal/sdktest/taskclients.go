package sdktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// taskOwners tests SPEC 11.3: a task belongs to its session, if there is one.
func taskOwners(t *testing.T, sdk SDK) {
	for _, way := range Ways {
		if way.Name == "SSE" || way.lines() && sdk.OneLine {
			continue
		}
		Bubble(t, way.Name, func(t *testing.T) {
			var w workshop
			c := w.config()
			defer func() { _ = w.tasks.Close() }()
			p := Dial(t, sdk.NewServer(c), way)
			var other *Peer
			if way.http() {
				other = p.another()
			} else {
				other = Dial(t, sdk.NewServer(c), way)
			}
			id := p.Task("now")
			m := other.Request("tasks/get", object{"taskId": id})
			if strangers := m.Error != nil && m.Error.Code == -32602; strangers == way.Stateless {
				t.Errorf("%s", m.Raw)
			}
			if way.Version == Old && !way.Stateless {
				mine, others := p.must("tasks/list", nil)["tasks"].([]any), other.must("tasks/list", nil)["tasks"].([]any)
				if len(mine) != 1 || len(others) != 0 {
					t.Error(mine, others)
				}
			}
			time.Sleep(2 * time.Minute)
		})
	}
}

// taskDisconnects tests SPEC 11.5: after the handle a disconnect has no effect. Before the handle, it stops the tool.
func taskDisconnects(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		id := p.Task("now")
		time.Sleep(s)
		p.cut()
		synctest.Wait()
		if p.lines() {
			time.Sleep(2 * time.Minute)
			if d := cmp.Diff(0, len(w.ended)); d != "" {
				t.Error(w.ended)
			}
			return
		}
		if got := p.get(id); got["status"] != "working" {
			t.Error(got)
		}
		if res, fault := p.result(id); fault != nil || texts(res)[0] != "done <nil>" || len(w.ended) > 0 {
			t.Error(res, fault, w.ended)
		}
	}, "lines", "HTTP")
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		p.call("late", nil, nil)
		time.Sleep(s)
		p.cut()
		synctest.Wait()
		if len(w.ended) != 1 || !errors.Is(w.ended[0], toolcall.ErrDisconnected) && !errors.Is(w.ended[0], context.Canceled) {
			t.Error(w.ended)
		}
	}, "lines", "HTTP stateless", "HTTP "+New)
}

// taskProgress tests SPEC 11.4: after the handle, progress with the call's token is still sent in protocol Old, if
// there is a stream for it, and not in protocol New. Nothing is sent after the end of the task.
func taskProgress(t *testing.T, sdk SDK) {
	withTasks(t, sdk, func(c *Config) {
		c.Tools["now"] = Tool{Run: func(ctx context.Context, _ *Call) (*Result, error) {
			for i := range 4 {
				time.Sleep(s)
				progress.Report(ctx, progress.Update{Progress: float64(i + 1), Message: fmt.Sprint("step ", i+1)})
			}
			time.Sleep(s)
			return Text("done"), nil
		}}
	}, func(t *testing.T, p *Peer, _ *workshop) {
		if p.http() && p.Version == Old && !p.Stateless {
			defer p.listen()()
		}
		id := p.Task("now")
		for i := range 4 {
			time.Sleep(s)
			synctest.Wait()
			if got := fmt.Sprint(p.get(id)["statusMessage"]); !strings.HasPrefix(got, fmt.Sprint("step ", i+1)) {
				t.Errorf("%d: %s", i, got)
			}
		}
		time.Sleep(time.Minute)
		notes := p.progress("t")
		if increases(t, notes); (len(notes) > 0) != (p.Version == Old && !p.Stateless && p.Handler == nil) && p.Handler == nil {
			t.Errorf("%d notifications", len(notes))
		}
		for _, n := range notes {
			if (p.lines() || !sdk.DropsMeta) && metaOf(n.Params, task.RelatedKey)["taskId"] != id {
				t.Errorf("%s", n.Raw)
			}
		}
	})
}

// taskAsks tests SPEC 11.4: a task asks a person in the form that the protocol requires.
func taskAsks(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, _ *workshop) {
		if p.Version == Old && (p.Stateless || p.Mute || p.Name == "SSE" && !sdk.AsksOverSSE) {
			return // no stream can carry a question
		}
		answer := object{"action": "accept", "content": object{}}
		for _, tool := range []string{"asks", "elicits"} {
			want := map[string]string{"asks": "accept as it was", "elicits": "accept"}[tool]
			if p.Version == New {
				if tool == "elicits" {
					continue
				}
				id := p.handle(p.task(tool, nil).wait())["taskId"]
				time.Sleep(s)
				got := p.get(id)
				questions, _ := got["inputRequests"].(object)
				answers := object{}
				for key, q := range questions {
					if q.(object)["method"] != "elicitation/create" {
						t.Error(q)
					}
					answers[key] = answer
				}
				if len(answers) != 1 || got["status"] != "input_required" {
					t.Fatal(got)
				}
				p.must("tasks/update", object{"taskId": id, "inputResponses": answers})
				if res, fault := p.result(id); fault != nil || texts(res)[0] != want {
					t.Error(res, fault)
				}
				continue
			}
			asked := make(chan Message, 9)
			p.mu.Lock()
			p.ask = func(m Message) any { asked <- m; time.Sleep(time.Minute); return answer }
			p.mu.Unlock()
			id := p.handle(p.task(tool, nil).wait())["taskId"]
			time.Sleep(s)
			if got := p.get(id); got["status"] != "input_required" {
				t.Error(got)
			}
			if res, fault := p.result(id); fault != nil || texts(res)[0] != want {
				t.Error(tool, res, fault)
			}
			if q := <-asked; q.Method != "elicitation/create" || metaOf(q.Params, task.RelatedKey)["taskId"] != id || q.Params["message"] != "the removal of 3 files" {
				t.Errorf("%s", q.Raw)
			}
		}
	})
}

// tasksShutdown tests SPEC 11.7: Shutdown aborts a running task, and the client can still fetch its result.
func tasksShutdown(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		id := p.Task("now")
		time.Sleep(s)
		ctx, cancel := context.WithTimeout(t.Context(), toolcall.ShutdownLimit)
		defer cancel()
		if err := w.tasks.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if len(w.ended) != 1 || !errors.Is(w.ended[0], toolcall.ErrShutdown) {
			t.Error(w.ended)
		}
		res, fault := p.result(id)
		if o := outcome(res); fault != nil || o["kind"] != "aborted" || o["exitCode"] != 130.0 || res["isError"] != true {
			t.Error(res, fault)
		}
	})
}

// manyTasks tests SPEC 11.7: more tasks can run than a server has workers. Beyond MaxRunning, calls stay plain.
func manyTasks(t *testing.T, sdk SDK) {
	const most = 20
	withTasks(t, sdk, func(c *Config) { c.Tasks.MaxRunning = most }, func(t *testing.T, p *Peer, _ *workshop) {
		var ids []any
		for i := range most {
			ids = append(ids, p.handle(p.task("now", object{"arguments": object{"what": i}}).wait())["taskId"])
		}
		if m := p.call("now", nil, nil).wait(); m.Error != nil || texts(m.Result)[0] != "done <nil>" {
			t.Errorf("%s", m.Raw)
		}
		for i, id := range ids {
			if res, fault := p.result(id); fault != nil || texts(res)[0] != fmt.Sprint("done ", i) {
				t.Error(res, fault)
			}
		}
	}, "lines "+New, "HTTP "+New)
}

// askedBefore tests that, from 2026-07-28 on, a question that a tool returns before its soft limit is the result of the
// call, and that the next call, with the answer, may become a task.
func askedBefore(t *testing.T, sdk SDK) {
	withTasks(t, sdk, func(c *Config) {
		c.Tools["late"] = Tool{Run: func(ctx context.Context, call *Call) (*Result, error) {
			if call.Answers["q"] == "" {
				return &Result{Ask: map[string]string{"q": "?"}, State: "asked"}, nil
			}
			return Text(call.Answers["q"] + " " + call.State), Sleep(ctx, 2*time.Minute)
		}}
	}, func(t *testing.T, p *Peer, _ *workshop) {
		m := p.call("late", nil, nil).wait()
		if m.Result["resultType"] != "input_required" {
			t.Fatalf("%v", m)
		}
		h := p.handle(p.call("late", nil, object{"requestState": m.Result["requestState"], "inputResponses": object{"q": object{"action": "accept", "content": object{}}}}).wait())
		if res, fault := p.result(h["taskId"]); fault != nil || texts(res)[0] != "accept asked" {
			t.Error(res, fault)
		}
	}, "lines "+New, "HTTP "+New)
}

// followManyTools tests SPEC 11.2: of a server with so many tools that not all are remembered, each tool that may be
// called as a task is called as one, and so after all pages of the list have been read.
func followManyTools(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		const pages, perPage = 3, 6000
		asTask, lists := make(map[string]bool), 0
		sc := &Script{extras: object{"tasks": object{"requests": object{"tools": object{"call": object{}}}}}}
		c := sc.dial(t, sdk, ClientConfig{Follow: true, Version: Old}, func(r *Asked) {
			if r.Method == "tools/call" {
				asTask[r.name()] = r.Params["task"] != nil
				r.fault(-32000, "no")
				return
			}
			lists++
			page := 0
			_, _ = fmt.Sscan(fmt.Sprint(r.Params["cursor"]), &page)
			tools := make([]string, perPage)
			for i := range tools {
				tools[i] = fmt.Sprintf(`{"name":"%d %d","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`, page, i)
			}
			next := ""
			if page < pages-1 {
				next = fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
			}
			r.answer(`{"tools":[` + strings.Join(tools, ",") + `]` + next + `,"ttlMs":0,"cacheScope":"private"}`)
		})
		want := map[string]bool{"unlisted": false, "0 0": true, "2 0": true, "1 0": true}
		for _, tool := range []string{"unlisted", "0 0", "2 0", "1 0"} {
			_, _ = c.Call(t.Context(), tool, nil, nil)
		}
		if d := cmp.Diff(want, asTask); d != "" || lists > len(want)*pages {
			t.Errorf("%d requests for a page %s", lists, d)
		}
	})
}
