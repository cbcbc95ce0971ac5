package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// A client speaks protocol 2025-11-25 over HTTP without an SDK, so that each request is visible.
type client struct{ url, user string }

// A status describes a task to a client.
type status struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
}

// call sends one request, decodes its result, and returns the replica that answered.
func (c client) call(ctx context.Context, method string, params map[string]any, result any) (replica string, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2025-11-25", "Authorization": "Bearer " + c.user,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	replica = res.Header.Get(replicaHeader)
	var answer struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return replica, fmt.Errorf("%s: HTTP status %s: %w", method, res.Status, err)
	}
	if answer.Error != nil {
		return replica, errors.New(answer.Error.Message)
	}
	return replica, json.Unmarshal(answer.Result, result)
}
