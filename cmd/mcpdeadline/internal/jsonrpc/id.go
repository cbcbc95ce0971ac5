package jsonrpc

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Find looks up an id or a token and returns its key and its value. The key may be spelled
// differently, such as 1.0 for 1 or "\u00e9" for "é", because the other side may spell an id its own
// way when it sends it back. If nothing is found, Find returns id and the zero value.
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

// FindAlike is [Find] for an id that the other side may have sent back as another type: with SDKs that compare numbers, a
// server that answers "1" to 1 works. SPEC 8.11.
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

// isOdd reports whether an id has another, more usual spelling. Bytes that are not UTF-8 come back replaced.
func isOdd(id string) bool {
	if strings.HasPrefix(id, `"`) {
		return strings.Contains(id, `\`) || !utf8.ValidString(id)
	}
	return strings.ContainsAny(id, ".eE")
}

// Same reports whether two ids are equal, however they are spelled.
func Same(a, b string) bool { return a == b || (isOdd(a) || isOdd(b)) && sameValue(a, b) }

// sameValue reports whether two ids are the same text or number.
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

// Alike reports whether two ids are the same but for their types, such as 1 and "1".
func Alike(a, b string) bool {
	return a != "" && b != "" && strings.Trim(a, `"`) == strings.Trim(b, `"`)
}

// A Recent holds the last 1024 ids that were added. It is not safe for concurrent use.
type Recent struct {
	ids [1024]string
	at  int
}

// Add adds an id, which takes the place of the oldest.
func (r *Recent) Add(id string) {
	r.ids[r.at] = id
	r.at = (r.at + 1) % len(r.ids)
}

// Has reports whether r holds an id, in any spelling and as a string or a number.
func (r *Recent) Has(id string) bool {
	return slices.ContainsFunc(r.ids[:], func(one string) bool { return one != "" && (Same(one, id) || Alike(one, id)) })
}
