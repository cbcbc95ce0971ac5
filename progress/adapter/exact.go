package adapter

import (
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// An AmbiguousError reports a JSON object in which readers may find different values for a key: it is given twice, or
// as Key in place of Want.
type AmbiguousError = exact.AmbiguousError

// Unmarshal is [json.Unmarshal] for a message that somebody else reads, too. The keys of structs are exact, where
// encoding/json takes "Method" for "method", and of two equal keys the last: what is checked must be what the other
// one sees. Where a key of a field is given twice, or in another case, the first exact one is read, and the error is
// an [*AmbiguousError]; it does not keep what else there is from being read, nor does a value of another type. The
// key of a field without a tag is in camel case, as the protocol has them: RequestID is "requestId".
//
// A [json.RawMessage] that is read is a part of data.
func Unmarshal(data []byte, v any) error { return exact.Unmarshal(data, v) }

// SetMember returns a copy of a JSON object in which the member at path, a list of at least one key, is value. A nil
// value removes the member. A nil object stands for an empty one, and missing objects on the path are added. The other
// bytes do not change. If a value on the path is not an object, SetMember returns the given object.
func SetMember(object, value json.RawMessage, path ...string) json.RawMessage {
	if value == nil {
		return exact.Delete(object, path...)
	}
	return exact.Set(object, value, path...)
}
