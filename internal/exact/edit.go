package exact

import (
	"encoding/json"
	"errors"
)

// Set returns a copy of a JSON object in which the member at path, a list of at least one key, is value. A nil object
// counts as empty, and missing objects on the path are added. If a key on the path occurs more than once, Set sets
// each occurrence. The other bytes do not change. If object is not a JSON object, or a value on the path is not, Set
// returns object itself.
func Set(object, value []byte, path ...string) []byte { return edit(object, value, path) }

// Delete returns a copy of a JSON object without the members at path, or object itself if there are none.
func Delete(object []byte, path ...string) []byte { return edit(object, nil, path) }

// A splice replaces a part of an object.
type splice struct {
	start, end  int
	replacement [][]byte
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
	size := len(object)
	for _, s := range splices {
		size -= s.end - s.start
		for _, by := range s.replacement {
			size += len(by)
		}
	}
	out, at := make([]byte, 0, size), 0
	for _, s := range splices {
		out = append(out, object[at:s.start]...)
		for _, by := range s.replacement {
			out = append(out, by...)
		}
		at = s.end
	}
	return append(out, object[at:]...)
}

// plan appends the splices that set the member at path of object to value, or delete it if value is nil. offset is the
// position of object in the whole text.
func plan(splices []splice, object []byte, offset int, value []byte, path []string) ([]splice, error) {
	found, empty, before, removed := false, true, 0, 0
	err := Members(object, func(m Member) error {
		empty = false
		if m.Key != path[0] {
			before = m.end
			return nil
		}
		found = true
		switch {
		case len(path) > 1:
			if m.Value[0] != '{' {
				return errLeft
			}
			var err error
			splices, err = plan(splices, m.Value, offset+m.start, value, path[1:])
			before = m.end
			return err
		case value == nil:
			start, end := remove(object, before, m)
			splices = append(splices, splice{offset + max(start, removed), offset + end, nil})
			removed = end
		default:
			splices = append(splices, splice{offset + m.start, offset + m.end, [][]byte{value}})
			before = m.end
		}
		return nil
	})
	if err != nil || found || value == nil {
		return splices, err
	}
	// The new member follows the last one, so that the other bytes keep their order.
	by := [][]byte{}
	if !empty {
		by = append(by, []byte{','})
	}
	last := 0
	for i, key := range path {
		if i > 0 {
			by = append(by, []byte{'{'})
			last++
		}
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		by = append(by, quoted, []byte{':'})
	}
	by = append(by, value)
	for range last {
		by = append(by, []byte{'}'})
	}
	end := len(object) - 1
	for object[end] != '}' {
		end--
	}
	return append(splices, splice{offset + end, offset + end, by}), nil
}

// remove returns the range of object to delete for m: m and one of the commas around it. before is the end of the last
// member before m that is not deleted, or 0 if there is none.
func remove(object []byte, before int, m Member) (start, end int) {
	if before > 0 { // with the comma before it
		return before, m.end
	}
	start, end = space(object, space(object, 0)+1), space(object, m.end)
	if object[end] == ',' {
		end++
	}
	return start, end
}
