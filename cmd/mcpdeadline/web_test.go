package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/stream"
)

// overHTTP starts a proxy that serves HTTP, in a bubble. It returns a client for it.
func overHTTP(t *testing.T, env []string, flags ...string) (*client, *http.Client) {
	t.Helper()
	h := startProxy(t, env, append([]string{"-http", ":0"}, append(flags, evilArgs(t)...)...)...)
	transport := &http.Transport{DialContext: h.vm.network.dial}
	h.vm.atEnd(transport.CloseIdleConnections)
	return h, &http.Client{Transport: transport}
}

// here is where the proxy listens.
const here = "http://127.0.0.1/mcp"

func connectHTTP(t *testing.T, client *http.Client, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, options)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: here, HTTPClient: client}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func callTool(t *testing.T, s *mcp.ClientSession, name string, args map[string]any) (*mcp.CallToolResult, string) {
	t.Helper()
	p := &mcp.CallToolParams{Name: name, Arguments: args}
	p.SetProgressToken("token of " + name)
	res, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res, res.Content[0].(*mcp.TextContent).Text
}

// A client of an SDK sees what the server offers and what the proxy adds. Each session has its own
// server, which ends with the session.
func TestHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, client := overHTTP(t, nil, "-idle", "8s", "-keep-alive", "300ms")
		var mu sync.Mutex
		var progress []string
		s := connectHTTP(t, client, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				progress = append(progress, fmt.Sprint(r.Params.ProgressToken, ": ", r.Params.Message))
			},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(10 * time.Second) // longer than the idle limit
				return &mcp.ElicitResult{Action: "decline"}, nil
			},
		})
		heard := func(text string) bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(strings.Join(progress, "\n"), text)
		}
		if _, got := callTool(t, s, "echo", map[string]any{"text": "é"}); got != "é" {
			t.Error(got)
		}
		if _, got := callTool(t, s, "progress", map[string]any{"ms": 10000}); got != "done" {
			t.Error(got)
		}
		if _, got := callTool(t, s, "ask", nil); !strings.Contains(got, "decline") {
			t.Error(got)
		}
		res, got := callTool(t, s, "hang", nil)
		if !res.IsError || !strings.HasPrefix(got, "No progress for 8s") {
			t.Error(got)
		}
		eventually(t, "progress", func() bool { return heard("token of progress: step 2") && heard("token of hang: ") })

		other := connectHTTP(t, client, nil)
		_, one := callTool(t, s, "pid", nil)
		_, two := callTool(t, other, "pid", nil)
		if one == two {
			t.Error("two sessions have one server")
		}
		if res, got := callTool(t, other, "exit", nil); !res.IsError || !strings.Contains(got, "exit status 5") {
			t.Error(got)
		}
		if _, three := callTool(t, other, "pid", nil); three == two || three == "" {
			t.Errorf("%q and %q", two, three)
		}
		if _, again := callTool(t, s, "pid", nil); again != one {
			t.Error("the other session's server is another")
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "the end of its server", func() bool { return h.vm.up() == 1 })
	})
}

// post sends a message and returns the answer's events as they come.
func post(ctx context.Context, t *testing.T, client *http.Client, url, body string, headers ...string) (*http.Response, <-chan wire) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan wire, 100)
	go func() {
		defer close(events)
		defer res.Body.Close()
		for e := range stream.Events(res.Body, 0) {
			w := wire{raw: string(e.Data)}
			_ = json.Unmarshal(e.Data, &w)
			events <- w
		}
	}()
	return res, events
}

const standsAloneMeta = `"_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// Foreign pages, unknown sessions and bodies that are not messages are refused.
func TestHTTPRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := overHTTP(t, []string{"EVIL_END=no key"})
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		for _, tc := range []struct {
			name, body string
			headers    []string
			status     int
		}{
			{"a page", ping, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
			{"another name", ping, []string{"Host", "example.com"}, http.StatusForbidden},
			{"no session", ping, nil, http.StatusBadRequest},
			{"an unknown session", ping, []string{"Mcp-Session-Id", "x"}, http.StatusNotFound},
			{"no JSON", `{`, nil, http.StatusBadRequest},
			{"a batch", `[` + ping + `]`, nil, http.StatusBadRequest},
			{"no message", `{}`, nil, http.StatusBadRequest},
		} {
			res, _ := post(t.Context(), t, client, here, tc.body, tc.headers...)
			if res.StatusCode != tc.status {
				t.Errorf("%s: %s", tc.name, res.Status)
			}
		}
		res, err := client.Get(here)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Error(res.Status)
		}
		// A server that cannot start is reported in the answer.
		_, events := post(t.Context(), t, client, here, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+initialize+`}`)
		if e := <-events; e.Error == nil || !strings.Contains(e.Error.Message, "no key") {
			t.Error(e.raw)
		}
	})
}
