package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	ping    = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	comment = ": processing\n\n"
	data    = "data: {\"text\":\"so\"}\n\n"
	first   = 3 * limit
)

// SPEC 9.2, 9.3: which limit stops a stream, exactly when, and what the error says.
func TestLife(t *testing.T) {
	for _, tc := range []struct {
		name   string
		first  time.Duration
		life   func(stream.Event) bool
		answer answer
		got    string
		at     time.Duration
		want   *stream.SilenceError // nil if the stream ends by itself
		limit  time.Duration
		msg    string
	}{
		{
			"no header", first, nil, deaf, "", first,
			&stream.SilenceError{}, first, "stream: stalled for 30s before the first chunk: 0 chunks in 30s",
		},
		{
			"the header does not renew the first limit", first, stream.DataEvent, after(first-1, events(time.Duration(2), data)), "", first,
			&stream.SilenceError{}, first, "stream: stalled for 30s before the first event: 0 events in 30s",
		},
		{
			"an event a nanosecond before the first limit", first, stream.DataEvent, after(first-2, events(time.Duration(1), data, limit-1, data)), data + data,
			first + limit - 2, nil, 0, "",
		},
		{
			"the second event at the idle limit", first, stream.DataEvent, events(first-1, data, limit+1, data), data, first + limit - 1,
			&stream.SilenceError{Events: 1}, limit, "stream: stalled for 10s between events: 1 event in 40s",
		},
		{
			"a first limit below idle", limit / 2, nil, events(limit/2+1, data), "", limit / 2,
			&stream.SilenceError{}, limit / 2, "stream: stalled for 5s before the first chunk: 0 chunks in 5s",
		},
		{
			"no first limit", -1, nil, after(9*limit, events(9*limit, "a", silence)), "a", 19 * limit,
			&stream.SilenceError{Events: 1}, limit, "stream: stalled for 10s between chunks: 1 chunk in 3m10s",
		},
		{
			"keep-alives before the first event", first, stream.DataEvent, events(limit, ping, limit, comment, limit+1, data), ping + comment, first,
			&stream.SilenceError{Ignored: 2}, first, "stream: stalled for 30s before the first event: 0 events in 30s, then 2 chunks that did not count",
		},
		{
			"keep-alives between events", 0, stream.DataEvent, events(data, limit/2, ping, limit/2-1, comment, time.Duration(2), data), data + ping + comment, limit,
			&stream.SilenceError{Events: 1, Ignored: 2}, limit, "stream: stalled for 10s between events: 1 event in 10s, then 2 chunks that did not count",
		},
		{
			"an event a nanosecond before the limit, after keep-alives", 0, stream.DataEvent,
			events(data, limit/2, ping, limit/2-1, data, limit-1), data + ping + data, 2*limit - 2, nil, 0, "",
		},
		{
			"any event: a ping counts, a comment does not", 0, anyEvent, events(limit/2, comment, limit/2-1, ping, limit/2, comment, silence),
			comment + ping + comment, 2*limit - 1,
			&stream.SilenceError{Events: 1, Ignored: 1}, limit, "stream: stalled for 10s between events: 1 event in 20s, then 1 chunk that did not count",
		},
		{
			"a part of an event does not count", 0, anyEvent, events("data: a", limit/2, "b", silence), "data: ab", limit,
			&stream.SilenceError{Ignored: 2}, limit, "stream: stalled for 10s before the first event: 0 events in 10s, then 2 chunks that did not count",
		},
		{
			"two events in one chunk", 0, stream.DataEvent, events(data+ping+data, silence), data + ping + data, limit,
			&stream.SilenceError{Events: 2}, limit, "stream: stalled for 10s between events: 2 events in 10s",
		},
		{
			"in a response that is no event stream, every chunk counts", 0, stream.DataEvent, typed(200, "application/json", limit-1, "{", limit-1, "}"), "{}",
			2*limit - 2, nil, 0, "",
		},
		{
			"in an event that is too large, every chunk counts", 0, stream.DataEvent,
			events("data: "+strings.Repeat("x", 1<<20), limit-1, "x", limit-1, "x"), "data: " + strings.Repeat("x", 1<<20+2), 2*limit - 2, nil, 0, "",
		},
		{
			"after an event that is too large, keep-alives do not count", 0, stream.DataEvent,
			events("data: "+strings.Repeat("x", 1<<20)+"\ndata: x\n\n", limit/2, ping, limit/2-1, comment, time.Duration(2), data), "data: " + strings.Repeat("x", 1<<20) + "\ndata: x\n\n" + ping + comment, limit,
			&stream.SilenceError{Events: 1, Ignored: 2}, limit, "stream: stalled for 10s between events: 1 event in 10s, then 2 chunks that did not count",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{tc.answer}}
				client := &http.Client{Transport: &stream.Transport{Base: s, Idle: limit, First: tc.first, Life: tc.life}}
				start := time.Now()
				got, err := fetch(client, get(context.Background()))
				if got != tc.got || time.Since(start) != tc.at || s.open != 0 {
					t.Errorf("%d bytes, %v after %v, %d bodies open, want %d after %v", len(got), err, time.Since(start), s.open, len(tc.got), tc.at)
				}
				if tc.want == nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var silent *stream.SilenceError
				if !errors.As(err, &silent) || !errors.Is(err, timeout.ErrIdle) {
					t.Fatalf("%v (%T), want a *SilenceError", err, err)
				}
				if diff := cmp.Diff(tc.want, silent, cmpopts.IgnoreUnexported(stream.SilenceError{})); diff != "" {
					t.Error(diff)
				}
				var stop *timeout.Error
				if !errors.As(err, &stop) || stop.Limit != tc.limit || silent.Error() != tc.msg {
					t.Errorf("%+v: %v, want %v: %s", stop, silent, tc.limit, tc.msg)
				}
			})
		})
	}
}

// A caller that leaves, a body that is closed and a stream that ends, each during the first wait.
func TestFirstEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(cancel context.CancelFunc, body io.Closer)
		want error
	}{
		{"cancelled", func(cancel context.CancelFunc, _ io.Closer) { cancel() }, context.Canceled},
		{"closed", func(_ context.CancelFunc, body io.Closer) { _ = body.Close() }, http.ErrBodyReadAfterClose},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var mu sync.Mutex
				var ended []error
				defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, s.Err)
				}})()
				s := &server{script: []answer{events(silence)}}
				resp, err := (&stream.Transport{Base: s, Idle: limit, First: first}).RoundTrip(get(ctx))
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(limit, func() { tc.end(cancel, resp.Body) })
				if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, tc.want) {
					t.Errorf("%v, want %v", err, tc.want)
				}
				_ = resp.Body.Close()
				synctest.Wait()
				if len(ended) != 2 {
					t.Errorf("%d executions have ended: %v", len(ended), ended)
				}
				for _, err := range ended {
					if tc.name == "closed" && err != nil {
						t.Errorf("an execution has ended with %v", err)
					}
				}
			})
		})
	}
}

// SPEC 3.4: a body that is closed when the first limit fires has one outcome, for whoever watches.
func TestClosedAtTheFirstLimit(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var ended []error
			defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, s.Err)
			}})()
			s := &server{script: []answer{events(silence)}}
			resp, err := (&stream.Transport{Base: s, Idle: limit, First: first}).RoundTrip(get(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(first, func() { _ = resp.Body.Close() })
			_, _ = resp.Body.Read(make([]byte, 1))
			_ = resp.Body.Close()
			synctest.Wait()
			if len(ended) != 2 || ended[0] != ended[1] {
				t.Fatalf("%v", ended)
			}
		})
	}
}

// SPEC 9.3: an event with data is life, except keep-alives, all forms of which count alike.
func TestDataEvent(t *testing.T) {
	const chunk = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",`
	for want, events := range map[bool][]string{
		true: {
			"data: x", "event: message\ndata: x", "event: pinging\ndata: {}", `data: {"type":"text","text":"ping"}`, "event: done\ndata: {}",
			"event: message_stop\ndata: null", "data: {\"done\":false}", "data: 0", "data: [DONE]", "data: not JSON", "data: {not JSON",
			chunk + `"choices":[{"index":0,"delta":{"content":" "},"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"delta":{"content":"","reasoning_content":"so"},"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			chunk + `"choices":[{"index":0,"delta":{},"logprob":-1e999}]}`, // no float64
			chunk + `"choices":[],"usage":{"total_tokens":9}}`, chunk + `"choices":[],"error":{"code":502}}`,
			"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}`,
			"event: response.in_progress\n" + `data: {"type":"response.in_progress"}`,
			`data: {"type":"ping","pad":"` + strings.Repeat("x", 5000) + `"}`, // no keep-alive is so long
		},
		false: {
			"data", "event: a", "id: 1", "event: ping\ndata: {}", "event: keepalive\ndata: {}", "event: keep-alive\ndata: {}", "event: heartbeat\ndata: {}",
			"event: ping", "event: a\nevent: ping\ndata: x", "event: keep_alive\ndata: {}", "event: Heart-Beat\ndata: 1", "event: response.keepalive\ndata: {}",
			"event: pong\ndata: {}", "event: noop\ndata: {}", `data: {"type": "ping"}`, `data: {"type":"keepalive","sequence_number":7}`,
			"event: message\n" + `data: {"type": "keep_alive"}`, `data: {"event":"heartbeat"}`, `data: {"message_type":"ping","id":"m"}`,
			"data: ping", `data: "keep-alive"`, "data: : keepalive", "data: :", "data:  ", "data: {}", "event: message\ndata: {}", "data: null", "data: []",
			"data: \"\"", "data: {\"content\":\"\",\"tools\":[]}",
			chunk + `"choices":[]}`, chunk + `"choices":[],"usage":null}`,
			chunk + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[]},"finish_reason":null}]}`,
			chunk + `"choices":[{"index":0,"text":"","finish_reason":null}]}`,
		},
	} {
		for _, event := range events {
			n := 0
			for e, err := range stream.Events(strings.NewReader(event+"\n\n"), 0) {
				if n++; err != nil || stream.DataEvent(e) != want {
					t.Errorf("%.200q: %v, %v", event, stream.DataEvent(e), err)
				}
			}
			if n != 1 {
				t.Errorf("%.200q is %d events", event, n)
			}
		}
	}
}

// SPEC 9.3: no form of a keep-alive hides that a model is stuck, and none ends healthy thinking: a model that was seen to
// be silent for 8.5 min goes on, and one that is silent for 15 min, or for 2 min if it does not think, does not.
func TestModels(t *testing.T) {
	const silence, look = 8*time.Minute + 30*time.Second, 15 * time.Second
	keepAlives := []string{"", comment, ping, "data: {\"choices\":[]}\n\n"} // TestDataEvent has all forms
	for _, keepAlive := range keepAlives {
		models := func(first, idle time.Duration) *stream.Transport {
			m := stream.Models()
			m.First, m.Idle = first, idle
			return m
		}
		thinks := func(d time.Duration) (steps []any) {
			steps = append(steps, data)
			for range int(d / look) {
				steps = append(steps, look, keepAlive)
			}
			return append(steps, data)
		}
		for _, tc := range []struct {
			name      string
			transport *stream.Transport
			thinks    time.Duration
			stopped   time.Duration
		}{
			{"healthy", stream.Models(), silence, 0},
			{"stuck", stream.Models(), time.Hour, 15 * time.Minute},
			{"quick and healthy", models(5*time.Minute, 2*time.Minute), time.Minute, 0},
			{"quick and stuck", models(5*time.Minute, 2*time.Minute), time.Hour, 2 * time.Minute},
			{"of a limit of its own", models(15*time.Minute, 3*time.Minute), time.Hour, 3 * time.Minute},
		} {
			t.Run(tc.name+" "+keepAlive, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tc.transport.Base = &server{script: []answer{events(thinks(tc.thinks)...)}}
					begun := time.Now()
					_, err := fetch(&http.Client{Transport: tc.transport}, get(context.Background()))
					want := tc.stopped
					if want == 0 {
						want = tc.thinks
					}
					if errors.Is(err, timeout.ErrIdle) != (tc.stopped > 0) || time.Since(begun) != want {
						t.Errorf("%v after %v, want %v", err, time.Since(begun), want)
					}
				})
			})
		}
	}
}

// anyEvent makes every event a sign of life.
func anyEvent(stream.Event) bool { return true }
