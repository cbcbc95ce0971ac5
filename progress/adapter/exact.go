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

// SetMember returns a copy of a JSON object in which the value at a path of keys is value, or which has none there if
// value is nil. Objects on the way that are not there are made; a nil object is an empty one. Everything else stays as it
// was written, and so does an object that has something else than an object on the way.
func SetMember(object, value json.RawMessage, path ...string) json.RawMessage {
	if value == nil {
		return exact.Delete(object, path...)
	}
	return exact.Set(object, value, path...)
}
