package jsonrpc

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Find looks up an id or a progress token, as JSON, and returns its key and its value in the map. The key may be
// spelled differently, such as 1 for 1.0 or "é" for "\u00e9", because a peer may encode the id in another way when it
// returns it. If nothing is found, Find returns id and the zero value.
func Find[V any](in map[string]V, id string) (string, V) {
	if v, ok := in[id]; ok {
		return id, v
	}
	for key, v := range in {
		if Same(key, id) {
			return key, v
		}
	}
	var none V
	return id, none
}

// FindAlike is like [Find], but also finds an id that the peer has returned as another type, such as "1" for 1, which
// some SDKs accept. SPEC 8.11.
func FindAlike[V any](in map[string]V, id string) (string, V) {
	key, v := Find(in, id)
	if _, found := in[key]; found {
		return key, v
	}
	for key, v := range in {
		if Alike(key, id) {
			return key, v
		}
	}
	return id, v
}

// isOdd reports whether a peer may spell an id differently when it returns the id. A peer replaces invalid UTF-8, for
// example.
func isOdd(id string) bool {
	if strings.HasPrefix(id, `"`) {
		return strings.Contains(id, `\`) || !utf8.ValidString(id)
	}
	return strings.ContainsAny(id, ".eE")
}

// Same reports whether two ids have the same value and type, in any spelling.
func Same(a, b string) bool { return a == b || (isOdd(a) || isOdd(b)) && sameValue(a, b) }

// sameValue reports whether two ids decode to the same string or number.
func sameValue(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	switch x.(type) {
	case string, float64:
		return x == y
	}
	return false
}

// Alike reports whether two ids are equal apart from their types, such as 1 and "1". Empty ids are not.
func Alike(a, b string) bool {
	return a != "" && b != "" && strings.Trim(a, `"`) == strings.Trim(b, `"`)
}

// A Recent holds the newest 1024 ids that were added. It is not safe for concurrent use.
type Recent struct {
	ids [1024]string
	at  int
}

// Add adds an id and removes the oldest.
func (r *Recent) Add(id string) {
	r.ids[r.at] = id
	r.at = (r.at + 1) % len(r.ids)
}

// Has reports whether r holds an id, in any spelling, as a string or a number.
func (r *Recent) Has(id string) bool {
	return slices.ContainsFunc(r.ids[:], func(one string) bool { return one != "" && (Same(one, id) || Alike(one, id)) })
}
