// Package identity compares the values that programs use to identify a session. Such a value is often an interface
// that a program implements, so that its type may not be comparable: == then panics, and so does a map with it as
// a key. Here a value of such a type, and one that does not equal itself, is the same as no other.
package identity

import "reflect"

// Key returns a map key for a session: the session itself or, if that is not comparable, a key that no other call
// returns.
func Key(session any) any {
	if comparable(session) {
		return session
	}
	return new(int)
}

// Same reports whether two values identify the same session. It returns false for values that cannot be compared, even
// if both are the same value. It never panics.
func Same(a, b any) bool { return comparable(a) && comparable(b) && a == b }

func comparable(v any) bool {
	return v == nil || reflect.ValueOf(v).Comparable() && v == v //nolint:staticcheck // a NaN in it equals nothing
}
