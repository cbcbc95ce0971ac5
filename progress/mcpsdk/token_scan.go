package mcpsdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCopies bounds how many copies are inserted into one body, and with that how much longer the body gets. In a larger
// batch the SDK rounds the remaining tokens.
const maxCopies = 100

// maxToken is the largest length of an integer that fits a float64, including its sign.
const maxToken = 310

// maxTask is the largest length, in bytes, of the "task" of a call that is copied.
const maxTask = 1 << 10

// A tokenScanner finds the places in a message, or in a batch of messages, where copies have to be inserted,
// while the bytes pass through. The copy of a large progress token goes right after
// params._meta.progressToken. The copy of params.task, if that is an object, goes right after params.task.
// The scanner examines each byte once, and stores only these two values. It rejects nothing: the SDK
// rejects a message that is not JSON, and exactToken checks each copy that it finds.
//
// The copy of params.task is in another "_meta", because the first may have passed already. encoding/json,
// and the decoder of the SDK, merge two members of the same name into one map.
type tokenScanner struct {
	depth  int  // the number of objects and arrays around the next byte
	base   int  // the depth at which a message begins: 1 in a batch, otherwise 0
	level  int  // the number of elements of tokenPath that the objects around the next byte match
	begun  bool // a byte other than white space has been scanned
	copies int  // the number of copies inserted

	quoted, escaped bool   // the next byte is in a string; it follows a backslash
	matching        bool   // the string may still be a key on tokenPath
	key             []byte // the beginning of that string
	hit             bool   // the next value is that of the key on tokenPath
	number          []byte // the digits of the progress token so far

	hitTask bool   // the next value is params.task
	task    []byte // the text of params.task so far, after a mark
	put     string // the copy that has to be inserted before the next byte
}

var tokenPath = [...]string{"params", "_meta", tokenKey}

const taskKey = "task" // a member of params

// next scans b up to the first byte before which a copy has to be inserted. It returns the index n of that byte, which
// it has scanned too, and the copy. If there is none, it returns len(b) and "".
func (s *tokenScanner) next(b []byte) (n int, put string) {
	for i, c := range b {
		if s.quoted {
			s.inString(c)
			s.inTask(c)
			continue
		}
		if s.put != "" { // c follows the end of params.task
			put, s.put = s.put, ""
			s.outside(c)
			return i, put
		}
		if len(s.number) > 0 {
			if !isNumber(c) {
				put = s.copyOf(string(s.number))
			} else if len(s.number) < maxToken {
				s.number = append(s.number, c)
				continue
			}
			s.number, s.hit = s.number[:0], false
		}
		s.outside(c)
		s.inTask(c)
		if put != "" {
			return i, put
		}
	}
	return len(b), ""
}

// inTask adds c to the copy of params.task, if c is part of it. At the end it sets put, unless the value is too long.
func (s *tokenScanner) inTask(c byte) {
	if len(s.task) == 0 {
		return // outside adds the mark when params.task begins
	}
	if s.task = append(s.task, c); len(s.task) > maxTask {
		s.task = s.task[:0]
		return
	}
	if c == '}' && !s.quoted && s.depth == s.base+s.level+1 {
		if s.copies < maxCopies {
			s.copies++
			s.put = `,"` + tokenPath[1] + `":{"` + askedKey + `":` + string(s.task[1:]) + `}`
		}
		s.task = s.task[:0]
	}
}

func (s *tokenScanner) copyOf(token string) string {
	if s.copies == maxCopies || !isLargeInteger(token) {
		return ""
	}
	s.copies++
	return `,"` + exactTokenKey + `":` + strconv.Quote(token)
}

func (s *tokenScanner) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped, s.matching = true, false
	case c == '"':
		s.quoted = false
	case s.matching:
		s.key = append(s.key, c)
		s.matching = len(s.key) <= len(tokenKey) // tokenKey is the longest key on the path
	}
}

func (s *tokenScanner) outside(c byte) {
	if !s.begun && c != ' ' && c != '\t' && c != '\r' && c != '\n' {
		s.begun = true
		if c == '[' {
			s.base++
		}
	}
	switch c {
	case '"':
		here := s.depth == s.base+s.level+1 // c is in the object whose keys are compared
		s.quoted, s.matching, s.key = true, here, s.key[:0]
	case ':': // outside of strings, a colon always follows a key
		s.hit = s.matching && string(s.key) == tokenPath[s.level]
		s.hitTask = s.matching && s.level == 1 && string(s.key) == taskKey
	case ',':
		s.hit, s.hitTask = false, false
	case '{', '[':
		if s.hitTask && c == '{' {
			s.task = append(s.task[:0], 0) // a mark; inTask adds the brace
		}
		if s.hit && s.level < len(tokenPath)-1 {
			s.level++ // for an array too, in which no key can follow
		}
		s.depth++
		s.hit, s.hitTask = false, false
	case '}', ']':
		s.depth--
		if s.level > 0 && s.depth < s.base+s.level+1 {
			s.level--
		}
	default:
		if s.hit && s.level == len(tokenPath)-1 && isNumber(c) {
			s.number = append(s.number, c)
		}
	}
}

func isNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// keepToken returns the params of a request with the copies of a tokenScanner. It returns params itself if no copy is
// needed.
func keepToken(params []byte) []byte {
	if !bytes.Contains(params, []byte(tokenKey)) && !bytes.Contains(params, []byte(`"`+taskKey+`"`)) {
		return params
	}
	s := tokenScanner{base: -1, level: 1, begun: true} // as if the scanner had passed the message up to the params
	var out, held []byte                               // held has been scanned, and is not in out yet
	for rest := params; ; {
		n, put := s.next(rest)
		if put == "" {
			if out == nil {
				return params
			}
			return append(append(out, held...), rest...)
		}
		out = append(append(append(out, held...), rest[:n]...), put...)
		held, rest = rest[n:n+1], rest[n+1:]
	}
}

// A tokenBody is the body of a request. Read inserts the copies of a tokenScanner.
type tokenBody struct {
	io.ReadCloser
	scan tokenScanner
	put  []byte // the bytes that the next Read returns
	rest []byte // bytes that have been read and not scanned
	err  error  // the error to return after rest
}

func (t *tokenBody) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(t.put) > 0 {
		n = copy(p, t.put)
		t.put = t.put[n:]
		return n, nil
	}
	held := len(t.rest) > 0
	if held {
		n = copy(p, t.rest)
	} else if t.err != nil {
		return 0, t.err
	} else if n, err = t.ReadCloser.Read(p); n < 0 || n > len(p) {
		return 0, errors.New("mcpsdk: the body has returned an impossible count")
	}
	at, put := t.scan.next(p[:n])
	if put == "" {
		if held {
			t.rest = t.rest[n:]
		}
		return n, err
	}
	// p[at] has been scanned, so it is returned together with the copy.
	t.put = append(append(t.put[:0], put...), p[at])
	if held {
		t.rest = t.rest[at+1:]
	} else {
		t.rest, t.err = bytes.Clone(p[at+1:n]), err
	}
	if at == 0 {
		return t.Read(p)
	}
	return at, nil
}

// The SDK decodes an integer token to a float64, which is exact up to 2^53. Middleware never sees the
// digits of a larger token. WrapTransport and WrapHTTP see the message earlier, and copy the digits to
// exactTokenKey in _meta. A client cannot misuse that key, because the copy must round to the token.
const (
	tokenKey      = "progressToken"
	exactTokenKey = "io.github.tooldeadline/progressToken"
)

// isLargeInteger reports whether s is an integer whose digits change on the way through a float64: it cannot hold the
// integer, or is marshalled with an exponent.
func isLargeInteger(s string) bool {
	if strings.Trim(strings.TrimPrefix(s, "-"), "0123456789") != "" {
		return false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !json.Valid([]byte(s)) {
		return false
	}
	out, err := json.Marshal(f)
	return err == nil && string(out) != s
}

// askedKey is the key in _meta under which WrapTransport and WrapHTTP copy the "task" of a call's params, which the SDK
// does not decode. wrappedKey is the key in the _meta of initialize that WrapTransport sets.
const (
	askedKey   = "io.github.tooldeadline/task"
	wrappedKey = "io.github.tooldeadline/wrapped"
)

// exactToken returns the progress token of a call with the digits that the client has sent. If it had to restore them,
// it also changes p, because the tool may send notifications with the token itself.
func exactToken(p *mcp.CallToolParamsRaw) any {
	token := p.GetProgressToken()
	digits, ok := p.Meta[exactTokenKey].(string)
	if !ok {
		return token
	}
	delete(p.Meta, exactTokenKey)
	if f, ok := token.(float64); ok && isLargeInteger(digits) {
		if g, _ := strconv.ParseFloat(digits, 64); f == g {
			token = json.Number(digits)
			p.Meta[tokenKey] = token
		}
	}
	return token
}
