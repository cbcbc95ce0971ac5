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

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// continuedID checks that m is a continuation that names the given wait tool, and returns its id.
func continuedID(t testing.TB, m *Message, tool string) string {
	t.Helper()
	c := metaOf(m.Result, task.ContinuationKey)
	id, _ := c["id"].(string)
	text := strings.Join(texts(m.Result), "\n")
	if m.Result["isError"] == true || id == "" || c["tool"] != tool || !strings.HasPrefix(text, "Still running after ") ||
		!strings.HasSuffix(text, fmt.Sprintf("\nCall %s with {\"id\": %q} to wait for the result.", tool, id)) {
		t.Fatalf("%s", m.Raw)
	}
	return id
}

func (p *Peer) wait(tool string, args object) *Message {
	return p.call(tool, "second", object{"arguments": args}).wait()
}

// continued runs a test with a workshop whose calls are continued after 46 s, and a client that does not declare tasks.
// tasks adds the option Tasks to the server.
func continued(t *testing.T, sdk SDK, tasks bool, test func(t *testing.T, p *Peer, w *workshop), prefixes ...string) {
	t.Helper()
	withTasks(t, sdk, func(c *Config) {
		if !tasks {
			_ = c.Tasks.Close()
			c.Tasks = nil
		}
		c.Continuation, c.Interval = 46*s, 10*s
		c.Policy.Tools["wait_for_result"] = policy.Tool{Limits: &timeout.Config{Total: s}} // must have no effect
		c.Tools["never"] = Tool{Output: true, Run: c.Tools["never"].Run}
	}, func(t *testing.T, p *Peer, w *workshop) {
		p.declare = false
		test(t, p, w)
		time.Sleep(time.Minute)
	}, prefixes...)
}

// continuation tests SPEC 12.1, 12.2, 12.3, 12.4: a client that does not support tasks gets an ordinary result for a
// long call in time, and the wait tool returns the result of the call any number of times.
func continuation(t *testing.T, sdk SDK) {
	for _, tasks := range []bool{false, true} {
		t.Run(fmt.Sprint("tasks=", tasks), func(t *testing.T) {
			continued(t, sdk, tasks, func(t *testing.T, p *Peer, w *workshop) {
				begun := time.Since(p.begun)
				m := p.call("never", "first", object{"arguments": object{"what": "it"}}).wait()
				id := continuedID(t, m, "wait_for_result")
				if want := fmt.Sprintf("Still running after 46s.\nmain.go 3 of 10\nCall wait_for_result with {\"id\": %q} to wait for the result.", id); texts(m.Result)[0] != want || m.Took != 46*s {
					t.Errorf("%v", m)
				}
				m = p.wait("wait_for_result", object{"id": id})
				if d := cmp.Diff([]string{"done it"}, texts(m.Result)); d != "" || !cmp.Equal(m.Result["structuredContent"], any(object{"files": 3.0})) || m.At-begun-time.Minute > 5*ms || m.Result["isError"] == true {
					t.Error(d, m.At-begun)
				}
				if m = p.wait("wait_for_result", object{"id": id}); texts(m.Result)[0] != "done it" { // again
					t.Errorf("%v", m)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if d := cmp.Diff([]string{"it"}, w.calls); d != "" {
					t.Error(d)
				}
				tools := p.tools()
				if wait := tools["wait_for_result"]; wait == nil || wait["outputSchema"] != nil || tools["never"]["outputSchema"] != nil {
					t.Error(tools)
				}
			})
		})
	}
}

// continuedEnds tests SPEC 12.2: a call of the wait tool that reaches the soft limit returns a new id. A stop of the
// tool has the same result as without a continuation, and cancel aborts the call.
func continuedEnds(t *testing.T, sdk SDK) {
	continued(t, sdk, false, func(t *testing.T, p *Peer, w *workshop) {
		begun := time.Since(p.begun)
		id := continuedID(t, p.call("stops", nil, nil).wait(), "wait_for_result")
		m := p.wait("wait_for_result", object{"id": id})
		calls := 0
		for ; metaOf(m.Result, task.ContinuationKey) != nil; calls++ {
			if got := continuedID(t, m, "wait_for_result"); got != fmt.Sprintf("%s.%d", id, calls+2) {
				t.Errorf("%s has become %s", id, got)
			}
			m = p.wait("wait_for_result", object{"id": metaOf(m.Result, task.ContinuationKey)["id"]})
		}
		if o := outcome(m.Result); o["kind"] != "total" || m.At-begun-time.Hour > 5*ms || calls != 77 || texts(m.Result)[1] != "part" {
			t.Errorf("%d calls, %v", calls, m)
		}

		id = continuedID(t, p.call("stops", nil, nil).wait(), "wait_for_result")
		m = p.wait("wait_for_result", object{"id": id, "cancel": true})
		if o := outcome(m.Result); m.Result["isError"] != true || o["kind"] != "aborted" || o["exitCode"] != 130.0 {
			t.Errorf("%v", m)
		}
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.ended[len(w.ended)-1]; !errors.Is(got, task.ErrCancelled) {
			t.Error(got)
		}
	}, "lines", "HTTP "+New)
}

// continuedSession tests SPEC 12.3, 12.5: a continuation belongs to its session, and ends with that.
func continuedSession(t *testing.T, sdk SDK) {
	continued(t, sdk, false, func(t *testing.T, p *Peer, w *workshop) {
		id := continuedID(t, p.call("never", nil, nil).wait(), "wait_for_result")
		if p.http() {
			other := p.another()
			if m := other.wait("wait_for_result", object{"id": id}); m.Result["isError"] != true || !strings.Contains(texts(m.Result)[0], "another session") {
				t.Errorf("%v", m)
			}
			other.leave()
		}
		synctest.Wait()
		w.mu.Lock()
		if len(w.ended) > 0 {
			t.Errorf("with the call: %v", w.ended)
		}
		w.mu.Unlock()
		p.leave()
		time.Sleep(s)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.ended) != 1 || !errors.Is(w.ended[0], toolcall.ErrSessionEnded) {
			t.Error(w.ended)
		}
	}, "lines", "HTTP "+Old, "SSE")
}

// besideTasks tests a server with tasks and continuations: a client that declares tasks gets a task. The wait tool may
// have another name, and passes the questions of a tool and the answers on.
func besideTasks(t *testing.T, sdk SDK) {
	withTasks(t, sdk, func(c *Config) {
		c.Continuation, c.WaitTool = 30*s, "go_on"
		c.Tools["later"] = Tool{Run: func(ctx context.Context, call *Call) (*Result, error) {
			if call.Answers["q"] != "" {
				return Text(call.Answers["q"]), nil
			}
			time.Sleep(time.Minute)
			return &Result{Ask: map[string]string{"q": "?"}}, nil
		}}
	}, func(t *testing.T, p *Peer, _ *workshop) {
		p.handle(p.task("work", nil).wait())
		p.declare = false
		p.ask = func(Message) any { return object{"action": "accept", "content": object{}} }
		id := continuedID(t, p.call("later", nil, nil).wait(), "go_on")
		time.Sleep(time.Minute)
		m := p.wait("go_on", object{"id": id})
		if p.Version == New {
			if m.Result["resultType"] != "input_required" {
				t.Fatalf("%v", m)
			}
			answers := object{}
			for key := range m.Result["inputRequests"].(object) {
				answers[key] = object{"action": "accept", "content": object{}}
			}
			m = p.call("go_on", nil, object{"arguments": object{"id": id}, "requestState": m.Result["requestState"], "inputResponses": answers}).wait()
		}
		if got := texts(m.Result); len(got) == 0 || got[0] != "accept" {
			t.Errorf("%v", m)
		}
	}, "lines", "HTTP "+New)
}

// sessionOfAnOpenCall tests SPEC 12.5: a client that ends its session aborts the calls whose requests are still open,
// even if they could have become tasks or continuations later.
func sessionOfAnOpenCall(t *testing.T, sdk SDK) {
	for _, as := range []string{"plain", "continued", "task"} {
		t.Run(as, func(t *testing.T) {
			withTasks(t, sdk, func(c *Config) {
				if as != "task" {
					c.Tasks = nil
				}
				if as == "continued" {
					c.Continuation = 50 * s
				}
			}, func(t *testing.T, p *Peer, w *workshop) {
				x := p.call("late", nil, nil)
				time.Sleep(s)
				p.leave()
				if m := x.wait(); m != nil && m.Result["isError"] != true { // the SDK may have closed the stream
					t.Errorf("%v", m)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.ended) != 1 || !errors.Is(w.ended[0], toolcall.ErrSessionEnded) {
					t.Error(w.ended)
				}
			}, "HTTP "+Old)
		})
	}
}
