// Package identity compares the values by which others name a session. Such a value is often an interface
// that a program implements, so it may be one that Go cannot compare: a map with it as a key panics, and
// so does ==. Such a session, like one that does not equal itself, is the same as no other.
package identity

import "reflect"

// Key returns what stands for a session in a map: the session, or a key that no other call returns.
func Key(session any) any {
	if comparable(session) {
		return session
	}
	return new(int)
}

// Same reports whether two values name the same session.
func Same(a, b any) bool { return comparable(a) && comparable(b) && a == b }

func comparable(v any) bool {
	return v == nil || reflect.ValueOf(v).Comparable() && v == v //nolint:staticcheck // a NaN in it equals nothing
}
