package exact

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// An AmbiguousError reports an object in which a key occurs twice, where Key and Want are equal, or in which Key
// differs from Want, the key of a field, only in case.
type AmbiguousError struct{ Key, Want string }

func (e *AmbiguousError) Error() string {
	key := texts.Short(e.Key, 256)
	if e.Key == e.Want {
		return fmt.Sprintf("the key %q is given twice", key)
	}
	return fmt.Sprintf("the key %q is to be spelled %q", key, e.Want)
}

// maxDepth is the largest depth to which objects and arrays may be nested, as in encoding/json.
const maxDepth = 10_000

var (
	errSyntax = errors.New("invalid JSON")
	errDepth  = errors.New("the JSON is nested too deeply")
	errObject = errors.New("want a JSON object")
)

// A Member is a key of an object and its value.
type Member struct {
	Key        string
	Value      []byte // a slice of the object, without space around the value
	start, end int    // the position of the value in the object
}

// Members calls f for each member of data, a JSON object, in order. It stops at the first error of f and returns it. If
// data is not valid, or is not an object, it returns an error, perhaps after calls of f.
func Members(data []byte, f func(Member) error) error {
	i := space(data, 0)
	if i == len(data) || data[i] != '{' {
		if i, err := skip(data, i, 0); err != nil || space(data, i) != len(data) {
			return errSyntax
		}
		return errObject
	}
	i, err := items(data, i, 0, f, nil)
	if err == nil && space(data, i) != len(data) {
		err = errSyntax
	}
	return err
}

// items reads the object or array that begins at data[i], and returns the index after it. It calls member or element,
// unless both are nil, for each item.
func items(data []byte, i, depth int, member func(Member) error, element func([]byte) error) (_ int, err error) {
	if depth > maxDepth {
		return 0, errDepth
	}
	object, last := data[i] == '{', data[i]+2 // the closing bracket, in ASCII
	if i = space(data, i+1); i < len(data) && data[i] == last {
		return i + 1, nil
	}
	for {
		var key []byte
		if object {
			begun := i
			if i, err = skipString(data, i); err != nil {
				return 0, err
			}
			key = data[begun:i]
			if i = space(data, i); i >= len(data) || data[i] != ':' {
				return 0, errSyntax
			}
			i = space(data, i+1)
		}
		begun := i
		if i, err = skip(data, i, depth+1); err != nil {
			return 0, err
		}
		switch value := data[begun:i:i]; {
		case member != nil:
			err = member(Member{text(key), value, begun, i})
		case element != nil:
			err = element(value)
		}
		if err != nil {
			return 0, err
		}
		switch i = space(data, i); {
		case i >= len(data):
			return 0, errSyntax
		case data[i] == last:
			return i + 1, nil
		case data[i] != ',':
			return 0, errSyntax
		}
		i = space(data, i+1)
	}
}

// text returns the value of a JSON string.
func text(quoted []byte) string {
	for _, c := range quoted {
		if c == '\\' || c >= 0x80 {
			var s string
			_ = json.Unmarshal(quoted, &s) // no error: skipString has accepted the string
			return s
		}
	}
	return string(quoted[1 : len(quoted)-1])
}

// space returns the index of the first byte from data[i] on that is not white space.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// skip checks the value that begins at data[i], and returns the index after it.
func skip(data []byte, i, depth int) (int, error) {
	if i >= len(data) {
		return 0, errSyntax
	}
	switch c := data[i]; c {
	case '{', '[':
		return items(data, i, depth, nil, nil)
	case '"':
		return skipString(data, i)
	case 't':
		return word(data, i, "true")
	case 'f':
		return word(data, i, "false")
	case 'n':
		return word(data, i, "null")
	default:
		return number(data, i)
	}
}

func word(data []byte, i int, want string) (int, error) {
	if len(data)-i < len(want) || string(data[i:i+len(want)]) != want {
		return 0, errSyntax
	}
	return i + len(want), nil
}

func number(data []byte, i int) (int, error) {
	digits := func() bool {
		begun := i
		for i < len(data) && '0' <= data[i] && data[i] <= '9' {
			i++
		}
		return i > begun
	}
	is := func(c, or byte) bool {
		found := i < len(data) && (data[i] == c || data[i] == or)
		if found {
			i++
		}
		return found
	}
	is('-', '-')
	if !is('0', '0') && !digits() {
		return 0, errSyntax
	}
	if is('.', '.') && !digits() {
		return 0, errSyntax
	}
	if is('e', 'E') {
		is('+', '-')
		if !digits() {
			return 0, errSyntax
		}
	}
	return i, nil
}

// skipString checks the string that begins at data[i], and returns the index after it.
func skipString(data []byte, i int) (int, error) {
	if i >= len(data) || data[i] != '"' {
		return 0, errSyntax
	}
	for i++; ; {
		i = plain(data, i)
		switch {
		case i >= len(data) || data[i] < ' ':
			return 0, errSyntax
		case data[i] == '"':
			return i + 1, nil
		case data[i] != '\\':
			i++
			continue
		}
		if i++; i >= len(data) {
			return 0, errSyntax
		}
		switch data[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			if len(data)-i < 5 {
				return 0, errSyntax
			}
			for _, c := range data[i+1 : i+5] {
				if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
					return 0, errSyntax
				}
			}
			i += 5
		default:
			return 0, errSyntax
		}
	}
}

// plain returns the index of the first byte from data[i] on that is a quote, a backslash or a control character. It
// compares eight bytes at a time, because most of a large message is text.
func plain(data []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	zero := func(x uint64) uint64 { return (x - ones) & ^x & highs } // marks the lowest zero byte
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		control := (x - ones*' ') & ^x & highs // marks the lowest byte below a space
		if found := control | zero(x^ones*'"') | zero(x^ones*'\\'); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}
