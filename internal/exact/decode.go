package exact

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Unmarshal is json.Unmarshal with exact keys for structs, including those within pointers, slices and maps. If the key
// of a field occurs twice, or in another case, which other readers may accept for it, Unmarshal stores the value of
// the first exact key and returns an [*AmbiguousError]. It ignores other keys. As in encoding/json, after a value
// of a wrong type the remaining fields are stored. A [json.RawMessage] is a part of data, not a copy. A type with
// an UnmarshalJSON method reads its keys itself. The key of a field without a tag is that of keyOf.
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
)

// decode stores data, a valid JSON value, in to.
func decode(data []byte, to reflect.Value) error {
	data = data[space(data, 0):]
	if to.Type() == raw {
		to.SetBytes(data[:len(data):len(data)])
		return nil
	}
	if to.Kind() != reflect.Pointer && reflect.PointerTo(to.Type()).Implements(unmarshaler) || !structured(to.Type()) {
		return json.Unmarshal(data, to.Addr().Interface())
	}
	null := data[0] == 'n'
	switch to.Kind() {
	case reflect.Pointer:
		if null {
			to.SetZero()
			return nil
		}
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		return decode(data, to.Elem())
	case reflect.Struct:
		if null {
			return nil
		}
		if data[0] != '{' {
			return mismatch(data, to)
		}
		return decodeStruct(data, to)
	case reflect.Map:
		if null {
			to.SetZero()
			return nil
		}
		if data[0] != '{' {
			return mismatch(data, to)
		}
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		var bad error
		_ = Members(data, func(m Member) error {
			key := reflect.ValueOf(m.Key).Convert(to.Type().Key())
			if to.MapIndex(key).IsValid() {
				bad = first(bad, &AmbiguousError{m.Key, m.Key})
				return nil
			}
			value := reflect.New(to.Type().Elem()).Elem()
			bad = first(bad, decode(m.Value, value))
			to.SetMapIndex(key, value)
			return nil
		})
		return bad
	default: // a slice
		if null {
			to.SetZero()
			return nil
		}
		if data[0] != '[' {
			return mismatch(data, to)
		}
		to.Set(reflect.MakeSlice(to.Type(), 0, 0))
		var bad error
		_ = Elements(data, func(value []byte) error {
			one := reflect.New(to.Type().Elem()).Elem()
			bad = first(bad, decode(value, one))
			to.Set(reflect.Append(to, one))
			return nil
		})
		return bad
	}
}

// structured reports whether decode handles values of type t itself, because they may contain keys. encoding/json reads
// values of other types.
func structured(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return true
	case reflect.Map:
		return t.Key().Kind() == reflect.String
	case reflect.Pointer, reflect.Slice:
		return t == raw || structured(t.Elem())
	}
	return false
}

// mismatch returns the error of encoding/json for data, a value that does not fit the type of to.
func mismatch(data []byte, to reflect.Value) error {
	return json.Unmarshal(data, reflect.New(to.Type()).Interface())
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
			err := decode(m.Value, to.FieldByIndex(known[i].index))
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

// fieldsOf returns the exported fields of a struct type with their keys.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fields.Load(t); ok {
		return known.([]field)
	}
	var known []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous && name == "" || name == "-" {
			continue
		}
		if name == "" {
			name = keyOf(f.Name)
		}
		known = append(known, field{name, f.Index})
	}
	fields.Store(t, known)
	return known
}
