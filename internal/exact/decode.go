package exact

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Unmarshal is json.Unmarshal with exact keys for structs, including those within pointers, slices, and maps with
// strings as keys, but not within arrays. If the key of a field occurs twice, or in another case, which other readers
// may accept for it, Unmarshal stores the value of the first exact key and returns an [*AmbiguousError], even if a
// value also has a wrong type. The same holds for a key of a map that occurs twice in the object. Unmarshal ignores
// other keys. As in encoding/json, after a value of a wrong type the remaining fields are stored. A [json.RawMessage]
// is a part of data, not a copy. A type with an UnmarshalJSON method reads its keys itself. The key of a field without
// a tag is that of keyOf.
func Unmarshal(data []byte, v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return &json.InvalidUnmarshalError{Type: reflect.TypeOf(v)}
	}
	if end, err := skip(data, space(data, 0), 0); err != nil || space(data, end) != len(data) {
		if where := json.Unmarshal(data, new(json.RawMessage)); where != nil {
			return where
		}
		return cmp.Or(err, errSyntax)
	}
	return decode(data, to.Elem())
}

var (
	raw         = reflect.TypeFor[json.RawMessage]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textual     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether encoding/json reads values of type t by a method of t or *t.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(textual)
}

// decode stores data, a valid JSON value, in to.
func decode(data []byte, to reflect.Value) error {
	data = data[space(data, 0):]
	t, kind := to.Type(), to.Kind()
	if t == raw {
		to.SetBytes(data[:len(data):len(data)])
		return nil
	}
	if kind != reflect.Pointer && readsItself(t) || !structured(t) {
		return json.Unmarshal(data, to.Addr().Interface())
	}
	if data[0] == 'n' { // null
		if kind != reflect.Struct {
			to.SetZero()
		}
		return nil
	}
	if kind == reflect.Slice && data[0] != '[' || (kind == reflect.Struct || kind == reflect.Map) && data[0] != '{' {
		return json.Unmarshal(data, reflect.New(t).Interface()) // for its error
	}
	var bad error
	switch kind {
	case reflect.Pointer:
		if to.IsNil() {
			to.Set(reflect.New(t.Elem()))
		}
		return decode(data, to.Elem())
	case reflect.Struct:
		return decodeStruct(data, to)
	case reflect.Map:
		if to.IsNil() {
			to.Set(reflect.MakeMap(t))
		}
		seen := make(map[string]bool)
		_ = Members(data, func(m Member) error {
			if seen[m.Key] {
				bad = first(bad, &AmbiguousError{m.Key, m.Key})
				return nil
			}
			seen[m.Key] = true
			key := reflect.ValueOf(m.Key).Convert(t.Key())
			value := reflect.New(t.Elem()).Elem()
			bad = first(bad, decode(m.Value, value))
			to.SetMapIndex(key, value)
			return nil
		})
	default: // a slice
		to.Set(reflect.MakeSlice(t, 0, 0))
		_, _ = items(data, 0, 0, nil, func(value []byte) error {
			one := reflect.New(t.Elem()).Elem()
			bad = first(bad, decode(value, one))
			to.Set(reflect.Append(to, one))
			return nil
		})
	}
	return bad
}

// structured reports whether decode handles values of type t itself, because they may contain keys: structs, maps with
// strings as keys, and pointers and slices of these. A json.RawMessage counts as one of them. encoding/json reads
// values of other types, such as arrays, and recursive ones such as []T for T.
func structured(t reflect.Type) bool {
	around := make([]reflect.Type, 0, 4)
	for t != raw && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		if slices.Contains(around, t) {
			return false
		}
		around, t = append(around, t), t.Elem()
	}
	return t == raw || t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && !readsItself(t.Key())
}

// first returns the error to report of two successive ones: the first, unless only the second is an AmbiguousError.
func first(bad, err error) error {
	if bad == nil || errors.As(err, new(*AmbiguousError)) && !errors.As(bad, new(*AmbiguousError)) {
		return err
	}
	return bad
}

func decodeStruct(data []byte, to reflect.Value) (bad error) {
	known := fieldsOf(to.Type())
	seen := make([]bool, len(known))
	_ = Members(data, func(m Member) error {
		i := slices.IndexFunc(known, func(f field) bool { return f.name == m.Key })
		switch {
		case i < 0:
			if i = slices.IndexFunc(known, func(f field) bool { return strings.EqualFold(f.name, m.Key) }); i >= 0 {
				bad = first(bad, &AmbiguousError{m.Key, known[i].name})
			}
		case seen[i]:
			bad = first(bad, &AmbiguousError{m.Key, m.Key})
		default:
			seen[i] = true
			at, err := known[i].in(to)
			if err == nil {
				err = decode(m.Value, at)
			}
			if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) { // as in encoding/json
				mismatch.Struct = to.Type().Name()
				mismatch.Field = strings.TrimSuffix(m.Key+"."+mismatch.Field, ".")
			}
			bad = first(bad, err)
		}
		return nil
	})
	return bad
}

type field struct {
	name  string
	index []int
}

// in returns the field of a struct. As in encoding/json, it sets a nil pointer to an embedded struct, or returns an
// error if the type of the embedded struct is not exported.
func (f field) in(v reflect.Value) (reflect.Value, error) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && !v.CanSet() {
				return v, fmt.Errorf("the field %q is in an embedded pointer to the unexported struct %v", f.name, v.Type().Elem())
			}
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, nil
}

var fields sync.Map // of []field, by type

// keyOf returns the key of a field without a tag, in the spelling of the protocol: "name" for Name, "id" for ID,
// "requestId" for RequestID.
func keyOf(field string) string {
	key := []byte(field)
	for i := range key {
		upper := func(i int) bool { return i < len(field) && 'A' <= field[i] && field[i] <= 'Z' }
		if upper(i) && (i == 0 || upper(i-1) && (upper(i+1) || i+1 == len(field))) {
			key[i] |= 0x20
		}
	}
	return string(key)
}

// fieldsOf returns the exported fields of a struct type with their keys. The fields of an embedded struct count as
// fields of t, unless the tag of the embedded struct has a name.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fields.Load(t); ok {
		return known.([]field)
	}
	var known []field
	var named [][]int // the indices of embedded structs with a name
	for _, f := range reflect.VisibleFields(t) {
		if slices.ContainsFunc(named, func(in []int) bool { return slices.Equal(in, f.Index[:min(len(in), len(f.Index))]) }) {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && isStruct(f.Type) {
			if name == "" {
				continue
			}
			named = append(named, f.Index)
		}
		if f.IsExported() && name != "-" {
			known = append(known, field{cmp.Or(name, keyOf(f.Name)), f.Index})
		}
	}
	fields.Store(t, known)
	return known
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}
