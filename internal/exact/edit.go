package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Set returns a copy of a JSON object in which the member at path, a list of at least one key, is value. A nil object
// counts as empty, and objects on the path that are missing or null are added. If a key on the path occurs more than
// once, Set sets each occurrence. The other bytes do not change. If object is not a JSON object, or another value on the
// path is not, Set returns object itself.
func Set(object, value []byte, path ...string) []byte { return edit(object, value, path) }

// Delete returns a copy of a JSON object without the members at path, or object itself if there are none.
func Delete(object []byte, path ...string) []byte { return edit(object, nil, path) }

// A splice replaces a part of an object.
type splice struct {
	start, end int
	by         []byte
}

var errLeft = errors.New("left as it is")

func edit(object, value []byte, path []string) []byte {
	if object == nil && value != nil {
		object = []byte("{}")
	}
	splices, err := plan(nil, object, 0, value, path)
	if err != nil || len(splices) == 0 {
		return object
	}
	parts, at := make([][]byte, 0, 2*len(splices)+1), 0
	for _, s := range splices {
		parts = append(parts, object[at:s.start], s.by)
		at = s.end
	}
	return slices.Concat(append(parts, object[at:])...)
}

// plan appends the splices that set the member at path of object to value, or delete it if value is nil. offset is the
// position of object in the whole text.
func plan(splices []splice, object []byte, offset int, value []byte, path []string) ([]splice, error) {
	found, empty, before, removed := false, true, 0, 0
	err := Members(object, func(m Member) (err error) {
		empty = false
		if m.Key != path[0] {
			before = m.end
			return nil
		}
		found = true
		switch {
		case len(path) > 1 && m.Value[0] == 'n' && value != nil: // null
			splices = append(splices, splice{offset + m.start, offset + m.end, within(path[1:], value)})
		case len(path) > 1 && m.Value[0] != '{':
			return errLeft
		case len(path) > 1:
			splices, err = plan(splices, m.Value, offset+m.start, value, path[1:])
		case value != nil:
			splices = append(splices, splice{offset + m.start, offset + m.end, value})
		default:
			start, end := remove(object, before, m)
			splices = append(splices, splice{offset + max(start, removed), offset + end, nil})
			removed = end
			return nil // before stays the end of the last member that is left
		}
		before = m.end
		return err
	})
	if err != nil || found || value == nil {
		return splices, err
	}
	// The new member follows the last one, so that the other bytes keep their order.
	by := within(path, value)
	if by = by[1 : len(by)-1]; !empty {
		by = append([]byte(","), by...)
	}
	end := offset + bytes.LastIndexByte(object, '}')
	return append(splices, splice{end, end, by}), nil
}

// within returns an object in which the member at path is value.
func within(path []string, value []byte) []byte {
	for _, key := range slices.Backward(path) {
		quoted, _ := json.Marshal(key) // a string has no error
		value = slices.Concat([]byte("{"), quoted, []byte(":"), value, []byte("}"))
	}
	return value
}

// remove returns the range of object to delete for m: m and one of the commas around it. before is the end of the last
// member before m that is not deleted, or 0 if there is none.
func remove(object []byte, before int, m Member) (start, end int) {
	if before > 0 { // with the comma before it
		return before, m.end
	}
	start, end = space(object, space(object, 0)+1), space(object, m.end)
	if end < len(object) && object[end] == ',' { // the rest of object has not been read yet
		end++
	}
	return start, end
}
