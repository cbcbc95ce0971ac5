// Package waittool defines the two tools of the proxy for calls that were answered with a handle: one waits for the
// result of such a call, and the other cancels it.
package waittool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// waitTool and cancelTool are the names of the tools that wait for a call and cancel it. Waiting is a separate tool,
// which only reads, because hosts call such a tool without the approval of a person. Otherwise the result would be lost
// if nobody is there to approve.
const (
	waitTool   = "wait_for_result"
	cancelTool = "cancel_running_call"
)

// Tools holds the two tools for the continued calls of one server.
type Tools struct {
	*adapter.Continuation
	Cancel string // the name of the tool that cancels
	owner  string // the name of the server, with which each id begins
}

// New returns the tools for a server with the given name. plain says that the host does not prefix the names of tools
// with that of the server. The names of the tools then end with the name of the server and mark, so that they are
// unique, because two servers may have the same name, and the same at each start, because a person may have approved
// them. New copies shared.
func New(shared *adapter.Continuation, server string, plain bool, mark string) *Tools {
	c := *shared
	c.Tool = waitTool
	w := &Tools{Continuation: &c, Cancel: cancelTool, owner: ownerOf(server)}
	if plain {
		suffix := "_" + w.owner + "_" + mark
		c.Tool += suffix
		w.Cancel += suffix
	}
	return w
}

// ownerOf returns the name of a server in the form in which ids begin with it: at most 20 characters of those that the
// name of a tool may have.
func ownerOf(server string) string {
	owner := notInToolName.ReplaceAllString(server, "-")
	return cmp.Or(owner[:min(len(owner), 20)], "server")
}

var notInToolName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// CommandMark returns a hash of the working directory and the command line of this program, as 6 letters and digits.
func CommandMark(args []string) string {
	dir, _ := os.Getwd()
	sum := sha256.Sum256([]byte(dir + "\x00" + os.Args[0] + "\x00" + strings.Join(args, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:6])
}

// Definitions returns the definitions of the two tools for the result of tools/list, by their names.
func (w *Tools) Definitions() map[string]map[string]any {
	wait := w.Definition()
	text, _ := wait["description"].(string)
	text, _, _ = strings.Cut(text, " With cancel, ")
	wait["description"] = text
	schema := map[string]any{
		"type":       "object",
		"properties": map[string]any{"id": map[string]any{"type": "string", "description": `The id from the "Still running" answer.`}},
		"required":   []string{"id"},
	}
	wait["inputSchema"] = schema
	hints := func(reads bool) map[string]bool {
		return map[string]bool{"readOnlyHint": reads, "destructiveHint": !reads, "idempotentHint": true, "openWorldHint": false}
	}
	wait["annotations"] = hints(true)
	return map[string]map[string]any{
		w.Tool: wait,
		w.Cancel: {
			"name":        w.Cancel,
			"description": `Stops a tool call that was answered with "Still running", and returns what it has got so far.`,
			"inputSchema": schema, "annotations": hints(false),
		},
	}
}

// Sign returns fields, the result of a call, as JSON, with the owner put before each occurrence of id. It puts none
// before an id that is too short to be that of a call.
func (w *Tools) Sign(fields map[string]any, id string) json.RawMessage {
	raw := jsonrpc.Encode(fields)
	if len(id) < 16 { // it may be any word
		return raw
	}
	return bytes.ReplaceAll(raw, []byte(id), []byte(w.owner+"."+id))
}

// Read translates the arguments of a call of the tool called name into those of the Continuation. id is the id of the
// call to wait for, without its owner and without the number of the wait, or "" if the arguments have none. refusal, if
// not "", is a text that says that the arguments are for another tool or another server.
func (w *Tools) Read(name string, arguments json.RawMessage) (_ json.RawMessage, id, refusal string) {
	var args struct {
		ID     *string `json:"id"`
		Cancel bool
	}
	if adapter.Unmarshal(arguments, &args) != nil || args.ID == nil {
		return arguments, "", ""
	}
	owner, id, signed := strings.Cut(*args.ID, ".")
	_, err := strconv.ParseUint(id, 10, 32)
	switch {
	case !signed || err == nil: // the model has left out the owner, and the id may end in a number
		id = *args.ID
	case owner != w.owner:
		return nil, "", fmt.Sprintf("The call with the id %q is one of the server %s: call that server's tool.", *args.ID, owner)
	}
	if name == w.Tool && args.Cancel {
		return nil, "", fmt.Sprintf("%s only waits. Call %s to stop the call.", name, w.Cancel)
	}
	read := jsonrpc.Encode(map[string]any{"id": id, "cancel": name == w.Cancel})
	id, _, _ = strings.Cut(id, ".")
	return read, id, ""
}
