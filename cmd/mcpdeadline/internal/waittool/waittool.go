// Package waittool implements the tools with which a host waits for, and cancels, the calls of one server that were
// answered with a handle.
package waittool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// waitTool is the name of the tool that waits for a call which was answered with a handle, and cancelTool of the one
// that stops such a call. There are two tools because hosts call a tool that only reads without asking the person:
// otherwise the result would be lost where nobody can be asked.
const (
	waitTool   = "wait_for_result"
	cancelTool = "cancel_running_call"
)

// Tools are what the host has to wait for and to cancel calls of one server that were continued.
type Tools struct {
	*adapter.Continuation
	Cancel string // name of the tool that cancels
	owner  string // begins each id, so that an id says whose it is
}

// New returns the tools for a server. A host that does not prefix names needs names that no other server
// has, and that are the same at each start, since a person may have approved them. Two servers may give
// themselves the same name, so the names of the tools depend on the command line too.
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

// ownerOf returns what begins the ids of a server's calls and results.
func ownerOf(server string) string {
	owner := strings.Map(inToolName, server)
	return cmp.Or(owner[:min(len(owner), 20)], "server")
}

// inToolName maps what the name of a tool cannot have to a hyphen.
func inToolName(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		return r
	}
	return '-'
}

// CommandMark returns a short name for a command line of this program in this directory.
func CommandMark(args []string) string {
	dir, _ := os.Getwd()
	sum := sha256.Sum256([]byte(dir + "\x00" + os.Args[0] + "\x00" + strings.Join(args, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:6])
}

// Definitions returns the tools as tools/list has them.
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

// Sign puts the owner before the id of a call in an answer.
func (w *Tools) Sign(fields map[string]any, id string) (map[string]any, error) {
	raw, err := json.Marshal(fields)
	if err != nil || len(id) < 16 || !bytes.Contains(raw, []byte(id)) { // an id that somebody has made up may be anywhere
		return fields, err
	}
	signed := make(map[string]json.RawMessage)
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(id), []byte(w.owner+"."+id)), &signed); err != nil {
		return nil, err
	}
	out := make(map[string]any)
	for key, value := range signed {
		out[key] = value
	}
	return out, nil
}

// Read returns the arguments of the tool called name for the Continuation, and the id without its owner and
// without the number of the wait. The refusal is not "" if the arguments are for another tool or another server.
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
	switch numbered := err == nil; {
	case !signed || numbered: // a model may leave out the owner
		id = *args.ID
	case owner != w.owner:
		return nil, "", fmt.Sprintf("The call with the id %q is one of the server %s: call that server's tool.", *args.ID, owner)
	}
	if name == w.Tool && args.Cancel {
		return nil, "", fmt.Sprintf("%s only waits. Call %s to stop the call.", name, w.Cancel)
	}
	read, err := json.Marshal(map[string]any{"id": id, "cancel": name == w.Cancel})
	if err != nil {
		panic(err)
	}
	id, _, _ = strings.Cut(id, ".")
	return read, id, ""
}
