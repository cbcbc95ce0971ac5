package exact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

type inner struct {
	Token json.RawMessage `json:"progressToken"`
}

type outer struct {
	Method string            `json:"method"`
	ID     json.RawMessage   `json:"id"`
	Meta   *inner            `json:"_meta"`
	List   []inner           `json:"list"`
	Named  map[string]inner  `json:"named"`
	N      float64           `json:"n"`
	Args   map[string]string `json:"args"`
}

func TestUnmarshal(t *testing.T) {
	token := func(s string) inner { return inner{json.RawMessage(s)} }
	one := token("1")
	for _, tc := range []struct {
		text, ambiguous string
		want            outer
	}{
		{text: `{"method":"a","id":null,"x":1}`, want: outer{Method: "a", ID: json.RawMessage("null")}},
		{text: `{"\u006dethod":"a"}`, want: outer{Method: "a"}},
		{text: `{"Method":"a"}`, ambiguous: "Method"},
		{text: `{"method":"a","Method":"b"}`, ambiguous: "Method", want: outer{Method: "a"}},
		{text: `{"METHOD":"b","method":"a"}`, ambiguous: "METHOD", want: outer{Method: "a"}},
		{text: `{"method":"a","method":"b"}`, ambiguous: "method", want: outer{Method: "a"}},
		{text: `{"method":"a","\u006dethod":"b"}`, ambiguous: "method", want: outer{Method: "a"}},
		{text: `{"\u004dethod":"b"}`, ambiguous: "Method"},
		{text: `{"li\u017ft":[]}`, ambiguous: "liſt"}, // which encoding/json takes for list
		{text: `{"_meta":{"progressToken":1}}`, want: outer{Meta: &one}},
		{text: `{"_meta":{"progresstoken":1}}`, ambiguous: "progresstoken", want: outer{Meta: new(inner)}},
		{text: `{"list":[{"progressToken":1},{"ProgressToken":2}]}`, ambiguous: "ProgressToken", want: outer{List: []inner{one, {}}}},
		{text: `{"named":{"a":{"progressToken":1},"A":{"progressToken":2}}}`, want: outer{Named: map[string]inner{"a": one, "A": token("2")}}},
		{text: `{"named":{"a":{"progressToken":1},"a":{"progressToken":2}}}`, ambiguous: "a", want: outer{Named: map[string]inner{"a": one}}},
		{text: `{"_meta":null,"list":null,"n":2}`, want: outer{N: 2}},
		{text: ` { "args" : { "a" : "b" } , "id" : [ 1 , { } ] } `, want: outer{Args: map[string]string{"a": "b"}, ID: json.RawMessage(`[ 1 , { } ]`)}},
	} {
		var got outer
		err := exact.Unmarshal([]byte(tc.text), &got)
		var bad *exact.AmbiguousError
		switch errors.As(err, &bad); {
		case tc.ambiguous == "" && err != nil, tc.ambiguous != "" && (bad == nil || bad.Key != tc.ambiguous):
			t.Errorf("%s: %v", tc.text, err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.text, d)
		}
	}
	for _, text := range []string{``, `{`, `{}x`, `{"n":"1"}`, `{"list":{}}`, `[]`, `"x"`, `{"a" 1}`, `{"n":01}`, "{\"n\":\"\x01\"}", strings.Repeat("[", 20_000)} {
		if err := exact.Unmarshal([]byte(text), new(outer)); err == nil {
			t.Errorf("%.50s: no error", text)
		}
	}
}

// A map that has the keys of the object already gets their new values, as from encoding/json.
func TestFilledMap(t *testing.T) {
	got := map[string]int{"a": 1, "b": 2}
	if err := exact.Unmarshal([]byte(`{"b":3,"c":4}`), &got); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]int{"a": 1, "b": 3, "c": 4}, got); d != "" {
		t.Error(d)
	}
}

// A field without a tag has the key that the protocol would give it.
func TestKeysWithoutTags(t *testing.T) {
	type fields struct{ ID, URI, Name, RequestID, ProtocolVersion, TTLMs string }
	var got fields
	if err := exact.Unmarshal([]byte(`{"id":"1","uri":"2","name":"3","requestId":"4","protocolVersion":"5","ttlMs":"6"}`), &got); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(fields{"1", "2", "3", "4", "5", "6"}, got); d != "" {
		t.Error(d)
	}
}

// A text reads itself from a string, and is a struct or the key of a map.
type text struct{ said string }

func (v *text) UnmarshalText(b []byte) error { v.said = "text " + string(b); return nil }

type textKey string

func (k *textKey) UnmarshalText(b []byte) error { *k = textKey("key " + string(b)); return nil }

type (
	Embedded struct {
		Deep *text `json:"deep"`
	}
	Named  struct{ Own int }
	Word   string
	hidden struct {
		Shown []text `json:"shown"`
	}
	unreachable struct {
		Lost int `json:"lost"`
	}
)

// A record has each way in which encoding/json finds a field.
type record struct {
	*Embedded
	Named `json:"named"`
	Word  `json:""`
	hidden
	Text   text              `json:"text"`
	Texts  map[textKey]inner `json:"texts"`
	ByName map[string]*text  `json:"byName"`
	Left   int               `json:"-"`
}

// FuzzUnmarshal compares what is read with encoding/json, where that finds the same keys.
func FuzzUnmarshal(f *testing.F) {
	for _, object := range []string{
		`{"text":"a"}`, `{"text":null}`, `{"text":{}}`, `{"text":1,"deep":"b"}`, `{"deep":"a"}`, `{"deep":null}`, `{"deep":[]}`,
		`{"texts":{"a":{"progressToken":1}}}`, `{"byName":{"a":"b","c":null}}`, `{"named":{"own":2}}`, `{"own":3}`,
		`{"word":"a"}`, `{"shown":["a","b",null]}`, `{"left":1}`, `{"lost":1}`,
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want record
		err := exact.Unmarshal(data, &got)
		if bad := (*exact.AmbiguousError)(nil); errors.As(err, &bad) {
			return
		}
		other := json.Unmarshal(data, &want)
		if (err == nil) != (other == nil) {
			t.Fatalf("%q: %v, and encoding/json says %v", data, err, other)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(record{}, text{}, hidden{})); err == nil && d != "" {
			t.Fatalf("%q: %s", data, d)
		}
	})
}

// A tree is a recursive type without keys.
type tree []*tree

func TestRecursiveType(t *testing.T) {
	var to struct {
		Tree tree `json:"tree"`
	}
	err := exact.Unmarshal([]byte(`{"tree":[[],[[]],null]}`), &to)
	if d := cmp.Diff(tree{{}, {{}}, nil}, to.Tree); err != nil || d != "" {
		t.Errorf("%v, %s", err, d)
	}
}

// encoding/json cannot set a field behind an embedded pointer to a struct that is not exported, and says so.
func TestUnreachableField(t *testing.T) {
	var to struct {
		*unreachable
		Found int `json:"found"`
	}
	err := exact.Unmarshal([]byte(`{"lost":1,"found":2}`), &to)
	if err == nil || !strings.Contains(err.Error(), "lost") || to.Found != 2 {
		t.Errorf("%v, %+v", err, to)
	}
}

func TestEdit(t *testing.T) {
	for _, tc := range []struct {
		object, path, value, want string
	}{
		{`{}`, "a", "1", `{"a":1}`},
		{``, "a b", "1", `{"a":{"b":1}}`},
		{`{"x" : 1.50 }`, "a", "1", `{"x" : 1.50 ,"a":1}`},
		{`{"a":[1,{"b":"}"}],"c":2}`, "a", "1", `{"a":1,"c":2}`},
		{`{"a":{"x":"<é"},"c":2}`, "a b c", "1", `{"a":{"x":"<é","b":{"c":1}},"c":2}`},
		{`{"\u0061":1,"a":2}`, "a", "3", `{"\u0061":3,"a":3}`},
		{`{"a":{"b":1},"a":{"c":2}}`, "a b", "3", `{"a":{"b":3},"a":{"c":2,"b":3}}`},
		{`{"a":1}`, "a b", "3", `{"a":1}`},
		{`{"a" : null, "c":2}`, "a b c", "1", `{"a" : {"b":{"c":1}}, "c":2}`},
		{`{"a":{"b":null}}`, "a b", "1", `{"a":{"b":1}}`},
		{`{"a":null}`, "a b", "", `{"a":null}`},
		{`[1]`, "a", "3", `[1]`},
		{`{"a":1}`, "a", "", `{}`},
		{`{"a":1,"b":2,"c":3}`, "a", "", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", "", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", "", `{"a":1,"b":2}`},
		{`{"a":1,"a":2,"a":3}`, "a", "", `{}`},
		{`{"b":1,"a":2,"a":3,"c":4,"a":5}`, "a", "", `{"b":1,"c":4}`},
		{`{"a":2,"a":3,"c":4}`, "a", "", `{"c":4}`},
		{`{"a":{"b":2},"c":4}`, "a b", "", `{"a":{},"c":4}`},
		{`{"c":4}`, "a b", "", `{"c":4}`},
		{`{"a":1`, "a", "", `{"a":1`},
		{`{"a":1`, "a", "2", `{"a":1`},
		{`{"a":{"b":1}`, "a b", "", `{"a":{"b":1}`},
	} {
		var got []byte
		path := strings.Fields(tc.path)
		if tc.value == "" {
			got = exact.Delete([]byte(tc.object), path...)
		} else {
			var object []byte
			if tc.object != "" {
				object = []byte(tc.object)
			}
			got = exact.Set(object, []byte(tc.value), path...)
		}
		if string(got) != tc.want {
			t.Errorf("%s %s %s: %s, want %s", tc.object, tc.path, tc.value, got, tc.want)
		}
	}
}

// FuzzScan compares what is valid, and what is read, with encoding/json.
func FuzzScan(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e+3,true,null,"\u00e9\n"],"b":{}}`, `{"a":1,"a":2}`, " {}\r\n", `{"aaaaaaaaaaaaaaaa":"bbbbbbbbbbbbbbbbb\"b"}`, "{\"\xff\":1}", `{"a":"é€"}`, `{,}`, `{"a":1,}`, `-`, `1e`, `"\ud800"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got json.RawMessage
		if err := exact.Unmarshal(data, &got); (err == nil) != json.Valid(data) {
			t.Fatalf("%q: %v", data, err)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil {
			return
		}
		fields := make(map[string]json.RawMessage)
		if err := exact.Members(data, func(m exact.Member) error { fields[m.Key] = m.Value; return nil }); err != nil {
			t.Fatal(err)
		}
		if len(fields) != len(want) {
			t.Fatalf("%q and %q", fields, want)
		}
		for key, value := range want {
			if !bytes.Equal(fields[key], value) {
				t.Fatalf("%q: %q and %q", key, fields[key], value)
			}
			set := exact.Set(data, []byte(`"set"`), key)
			if !json.Valid(set) {
				t.Fatalf("%q", set)
			}
			rest := exact.Delete(data, key)
			var left map[string]json.RawMessage
			if err := json.Unmarshal(rest, &left); err != nil || len(left) != len(want)-1 {
				t.Fatalf("%q without %q: %q", data, key, rest)
			}
		}
	})
}
