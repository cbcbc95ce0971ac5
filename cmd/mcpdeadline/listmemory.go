package main

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Bounds of the lists that are kept for a server that sleeps.
const (
	maxKeptLists = 8
	maxListPages = 100
	maxListBytes = 8 << 20 // of all of them
	listLimit    = 10 * time.Second
)

// A page is a part of a list, as the server answers it. A request for it has the cursor; the first page has none.
type page struct {
	cursor string
	result json.RawMessage
}

// A wanted is a list that the host has requested: the method, and the params without the fields that differ
// from one request to the next.
type wanted struct{ method, params string }

// listOf returns the kind of list that a method requests: tools, resources or prompts. It returns "" for any
// other method.
func listOf(method string) string {
	switch method {
	case "tools/list":
		return "tools"
	case "resources/list", "resources/templates/list":
		return "resources"
	case "prompts/list":
		return "prompts"
	}
	return ""
}

// wants returns the list that m requests, and the cursor.
func wants(m *message) (w wanted, cursor string) {
	w.method = m.Method
	fields := make(map[string]json.RawMessage)
	if m.Params != nil && adapter.Unmarshal(m.Params, &fields) != nil || fields == nil {
		return wanted{}, ""
	}
	cursor = cursorOf(fields["cursor"])
	delete(fields, "cursor")
	var meta map[string]json.RawMessage
	if adapter.Unmarshal(fields["_meta"], &meta) == nil {
		if delete(meta, "progressToken"); len(meta) == 0 {
			delete(fields, "_meta")
		} else {
			put(fields, "_meta", meta)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	w.params = string(raw)
	return w, cursor
}

func cursorOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text)
	return text
}

// want notes that the host has requested a list. The caller holds s.mu.
func (s *session) want(m *message) {
	if w, _ := wants(m); w.method != "" && len(s.wanted) < maxKeptLists {
		s.wanted[w] = true
	}
}

// fetchLists requests whole lists from a run. A list that the server refuses, or that is too large to be kept,
// is missing. It reports false if the server has not answered in time.
func (s *session) fetchLists(ctx context.Context, up upstream, all map[wanted]bool) (_ map[wanted][]page, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	kept, size := make(map[wanted][]page), 0
	for w := range all {
		pages, cursor := []page(nil), ""
		for whole := false; !whole; {
			params := json.RawMessage(w.params)
			if cursor != "" {
				params = with(params, cursor, "cursor")
			}
			answer, err := s.await(ctx, up, w.method, params)
			if err != nil {
				return nil, false
			}
			var next struct{ NextCursor json.RawMessage }
			if size += len(answer.Result); answer.Error != nil || size > maxListBytes || len(pages) == maxListPages || adapter.Unmarshal(answer.Result, &next) != nil {
				size, pages = 0, nil
				break
			}
			pages = append(pages, page{cursor, answer.Result})
			cursor = cursorOf(next.NextCursor)
			whole = cursor == ""
		}
		if pages != nil {
			kept[w] = pages
		}
	}
	return kept, true
}

// await sends a request of the proxy to a run, and returns the answer.
func (s *session) await(ctx context.Context, up upstream, method string, params any) (*message, error) {
	answer, forget := s.request(up, method, params)
	defer forget()
	select {
	case m := <-answer:
		return m, nil
	case <-up.ended():
		return nil, cmp.Or(up.why(), context.Canceled)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sameList reports whether two lists have the same items in the same order, however they are paged.
func sameList(method string, a, b []page) bool {
	return reflect.DeepEqual(items(method, a), items(method, b))
}

// items returns the items of all pages.
func items(method string, pages []page) (all []any) {
	key := listOf(method)
	if method == "resources/templates/list" {
		key = "resourceTemplates"
	}
	for _, p := range pages {
		var fields map[string]any
		_ = adapter.Unmarshal(p.result, &fields)
		some, _ := fields[key].([]any)
		all = append(all, some...)
	}
	return all
}
