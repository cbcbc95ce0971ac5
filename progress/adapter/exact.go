package adapter

import (
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// An AmbiguousError reports a JSON object in which readers may find different values for a key: the key is given
// twice, or is spelled Key in place of Want, which differs from Key only in case.
type AmbiguousError = exact.AmbiguousError

// Unmarshal is [json.Unmarshal] for a message that another program reads, too, so that both see the same values. The
// keys of structs are exact, whereas encoding/json takes "Method" for "method", and the last of two equal keys. If a
// key of a field or a map is given twice, or that of a field in another case, Unmarshal reads the first exact key, and
// the error is an [*AmbiguousError]. After this error, or a value of a wrong type, Unmarshal still reads the remaining
// fields. The key of a field without a tag is in camel case, as in the protocol: RequestID is "requestId".
//
// Maps in v must be empty. Of a tag only the name counts. Arrays, interfaces, maps whose keys are no plain strings, and
// types with a method UnmarshalJSON or UnmarshalText are read as by encoding/json. A [json.RawMessage] that is read is
// a part of data.
func Unmarshal(data []byte, v any) error { return exact.Unmarshal(data, v) }

// SetMember returns a copy of a JSON object in which the member at path, a list of at least one key, is value. A nil
// value removes the member; if there is none, SetMember returns object itself. Otherwise a nil object stands for an
// empty one, and objects on the path that are missing or null are added. The other bytes do not change. If a key on the
// path occurs more than once, each occurrence is changed. If object or another value on the path is not a JSON object,
// SetMember returns object unchanged.
func SetMember(object, value json.RawMessage, path ...string) json.RawMessage {
	if value == nil {
		return exact.Delete(object, path...)
	}
	return exact.Set(object, value, path...)
}
