package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxKeepAlive is the length in bytes of the longest data that is checked for a keep-alive.
const maxKeepAlive = 4 << 10

// isKeepAlive reports whether e only shows that the connection is open. Servers of language models send such events
// in many forms: with the name of a keep-alive, with a type in the data that is such a name, with data that is empty,
// a comment or such a name, and as a chunk of a chat without content.
func isKeepAlive(e Event) bool {
	if isKeepAliveName(e.Name) {
		return true
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || data[0] == ':':
		return true
	case len(data) > maxKeepAlive:
		return false
	}
	var value any
	valid := json.Valid(data)
	if valid {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // a number that a float64 cannot hold says something, too
		_ = d.Decode(&value)
	}
	switch {
	case valid && (e.Name == "" || e.Name == "message") && saysNothing(value): // any other name has a meaning
		return true
	case data[0] != '{':
		return isKeepAliveName(strings.Trim(string(data), `"`))
	}
	object, _ := value.(map[string]any)
	for _, key := range []string{"type", "event", "message_type", "object", "kind"} {
		if name, ok := object[key].(string); ok && isKeepAliveName(name) {
			return true
		}
	}
	choices, chat := object["choices"].([]any)
	return chat && saysNothing(choices, "index", "role") && saysNothing(object["usage"]) && saysNothing(object["error"])
}

// isKeepAliveName reports whether name, or its part after the last dot, is that of a keep-alive, such as "ping",
// "keep_alive" or "response.heartbeat".
func isKeepAliveName(name string) bool {
	if len(name) > 64 {
		return false
	}
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(name) {
	case "ping", "pong", "keepalive", "heartbeat", "noop":
		return true
	}
	return false
}

// saysNothing reports whether a JSON value is absent, null, an empty string, or an array or object that contains only
// such values. Members of objects whose keys are in without are ignored.
func saysNothing(value any, without ...string) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(v any) bool { return !saysNothing(v, without...) })
	case map[string]any:
		for key, v := range v {
			if !slices.Contains(without, key) && !saysNothing(v, without...) {
				return false
			}
		}
		return true
	}
	return false
}
