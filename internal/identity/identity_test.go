package identity_test

import (
	"math"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/identity"
)

// SPEC 3.24: a session of any type is a key, and is compared, without a panic.
func TestKey(t *testing.T) {
	type inner struct{ v any }
	for _, v := range []any{nil, 1, "a", new(int), inner{1}, [1]any{"a"}} {
		if identity.Key(v) != v || !identity.Same(v, v) {
			t.Errorf("%#v is not itself", v)
		}
	}
	for _, v := range []any{[]int{1}, map[int]int{}, func() {}, inner{[]int{1}}, [1]any{map[int]int{}}, math.NaN(), inner{math.NaN()}} {
		if identity.Key(v) == identity.Key(v) || identity.Same(v, v) || identity.Same(v, nil) || identity.Same("", v) {
			t.Errorf("%#v is the same as another", v)
		}
		all := map[any]int{}
		all[identity.Key(v)]++
	}
}
