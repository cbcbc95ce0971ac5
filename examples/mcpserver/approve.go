package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

type approveInput struct {
	Action string `json:"action" jsonschema:"what is to be approved, as the person will read it"`
}

// An approver asks the person at the client.
//
// It returns the question and is called again with the answer. With protocol 2026-07-28 the client asks
// between the two calls, and the server does not wait. With an older protocol the SDK asks during the
// call, and the middleware waits under progress.Await: the idle check is suspended, and progress tells
// the client what the call waits for.
type approver struct {
	limit time.Duration
	key   []byte
}

func newApprover(limit time.Duration) *approver {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &approver{limit, key}
}

const question = "approve" // id of the question

func (a *approver) approve(_ context.Context, req *mcp.CallToolRequest, in approveInput) (*mcp.CallToolResult, any, error) {
	answer, answered := req.Params.InputResponses[question].(*mcp.ElicitResult)
	if !answered {
		return a.ask(req, in.Action)
	}
	asked, err := a.readState(req.Params.RequestState, in.Action)
	if err != nil {
		return nil, nil, err
	}
	if took := time.Since(asked); took >= a.limit {
		return nil, nil, &expired{&timeout.Error{
			Kind:    timeout.ErrTotal,
			Figures: timeout.Figures{Tool: "approve", Elapsed: took, Limits: timeout.Config{Total: a.limit}},
			Limit:   a.limit,
		}}
	}
	decision := "Nothing was decided about: " + in.Action // the question was dismissed
	switch {
	case answer.Action == "decline", answer.Action == "accept" && answer.Content["approve"] != true:
		decision = "Denied: " + in.Action
	case answer.Action == "accept":
		decision = "Approved: " + in.Action
	}
	return text(decision), nil, nil
}

func (a *approver) ask(req *mcp.CallToolRequest, action string) (*mcp.CallToolResult, any, error) {
	if !canElicit(req) {
		return nil, nil, errors.New("cannot ask for approval: this client does not support elicitation")
	}
	return &mcp.CallToolResult{
		RequestState: a.state(time.Now(), action),
		InputRequests: mcp.InputRequestMap{question: &mcp.ElicitParams{
			Message: action,
			RequestedSchema: map[string]any{
				"type":     "object",
				"required": []string{"approve"},
				"properties": map[string]any{
					"approve": map[string]any{"type": "boolean", "title": "Approve", "description": "whether this may be done"},
				},
			},
		}},
	}, nil, nil
}

func canElicit(req *mcp.CallToolRequest) bool {
	p := req.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil // older clients that support forms declare neither
}

// state returns the request state, which the client returns with the answer. It contains the time of the question and a
// signature of that time and the action, so that an answer cannot be used for another question.
func (a *approver) state(asked time.Time, action string) string {
	at := binary.BigEndian.AppendUint64(nil, uint64(asked.UnixNano()))
	return hex.EncodeToString(append(at, a.sign(at, action)...))
}

func (a *approver) readState(state, action string) (asked time.Time, _ error) {
	b, err := hex.DecodeString(state)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b[8:], a.sign(b[:8], action)) {
		return asked, errors.New("this is the answer to another question")
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))), nil
}

func (a *approver) sign(at []byte, action string) []byte {
	h := hmac.New(sha256.New, a.key)
	h.Write(at)
	h.Write([]byte(action))
	return h.Sum(nil)
}

// expired is the error for an answer that arrived too late. Its text is that of progress.ErrNoAnswer.
type expired struct{ err *timeout.Error }

func (*expired) Error() string { return progress.ErrNoAnswer.Error() }

func (e *expired) Unwrap() error { return e.err }
