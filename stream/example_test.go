package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func ExampleBody() {
	r, w := io.Pipe() // a connection, say
	go func() { _, _ = io.WriteString(w, "hello") }()

	body := stream.Body(context.Background(), r, 500*time.Millisecond)
	defer body.Close()
	got, err := io.ReadAll(body)
	fmt.Println(string(got))
	fmt.Println(errors.Is(err, timeout.ErrIdle))
	// Output:
	// hello
	// true
}

// A client whose downloads may take any time while they make progress.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // accepts, and never answers
	}))
	defer server.Close()

	client := &http.Client{Transport: &stream.Transport{Idle: 50 * time.Millisecond}}
	_, err := client.Get(server.URL)
	fmt.Println(errors.Is(err, timeout.ErrIdle))
	// Output: true
}

// Either MCP SDK accepts this client. The server is cut off in the middle of an event and goes
// silent in the next connection; the reader sees one stream.
func ExampleNotifications() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		switch r.Header.Get("Last-Event-ID") {
		case "":
			_, _ = io.WriteString(w, "id: 1\ndata: one\n\nid: 2\ndata: tw")
		case "1":
			_, _ = io.WriteString(w, "id: 2\ndata: two\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "2":
			w.WriteHeader(http.StatusNotFound) // the session is gone
		}
	}))
	defer server.Close()

	client := &http.Client{Transport: &stream.Notifications{Idle: 200 * time.Millisecond}}
	req, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	fmt.Print(string(got))
	fmt.Println(err)
	// Output:
	// id: 1
	// data: one
	//
	// id: 2
	// data: two
	//
	// stream: not reopened: 404 Not Found
}

func ExampleEvents() {
	body := strings.NewReader("id: 1\ndata: one\n\n: a comment\nid: 2\ndata: two\n\ndata: cut o")
	for event, err := range stream.Events(body, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s\n", event.ID, event.Data)
	}
	// Output:
	// 1 one
	// 2 two
}

// A model that is stuck behind keep-alives is found.
func ExampleModels() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"text\":\"Hel\"}\n\n")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "event: ping\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	defer server.Close()

	transport := stream.Models()
	transport.Idle = 500 * time.Millisecond // 15 min unless set
	resp, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	first, _, _ := strings.Cut(string(got), "\n")
	fmt.Println(first)
	var silent *stream.SilenceError
	if errors.As(err, &silent) {
		fmt.Println(silent.Events, "event;", "keep-alives:", silent.Ignored > 0)
	}
	// Output:
	// data: {"text":"Hel"}
	// 1 event; keep-alives: true
}

func ExampleDataEvent() {
	body := strings.NewReader("event: ping\ndata: {}\n\ndata: {\"text\":\"Hello\"}\n\n")
	for event := range stream.Events(body, 0) {
		fmt.Printf("%s: %t\n", event.Data, stream.DataEvent(event))
	}
	// Output:
	// {}: false
	// {"text":"Hello"}: true
}

// Any server of event streams; in front of an MCP SDK's handler it goes outermost.
func ExampleKeepAlive() {
	quiet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // has nothing to say
	})
	server := httptest.NewServer(stream.KeepAlive(quiet, 20*time.Millisecond))
	defer server.Close()

	resp, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	line := make([]byte, len(": keep-alive"))
	_, err = io.ReadFull(resp.Body, line)
	fmt.Println(string(line), err)
	// Output: : keep-alive <nil>
}
