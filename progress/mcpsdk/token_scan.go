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

// maxCopies bounds how many tokens of one body are copied, and with that how much longer it
// gets. A batch of more has the rest of its tokens rounded.
const maxCopies = 100

// maxToken is as long as an integer can be that a float64 stands for, with its sign.
const maxToken = 310

// maxTask is how long the "task" of a call can be that is copied.
const maxTask = 1 << 10

// A tokenScanner finds where copies belong in a message, or in a batch of them, as its bytes go by:
// that of a large token behind the value of params._meta.progressToken, and that of params.task, if
// it is an object, behind it. It keeps no more of the message than that value, and looks at each byte
// once. It refuses nothing: a message that is not JSON is refused by the SDK, and exactToken checks
// each copy wherever it is now.
//
// The copy of params.task is in a "_meta" of its own, since the other one may have gone by. Of two
// that are maps, encoding/json and what the SDK has in its place decode the one into the other.
type tokenScanner struct {
	depth  int  // of objects and arrays
	base   int  // the depth around a message: 1 in a batch
	level  int  // how much of tokenPath the objects around have matched
	begun  bool // the first byte that is no space has been seen
	copies int

	quoted, escaped bool
	matching        bool   // the string is a key of an object on the path
	key             []byte // its beginning, as far as it can match
	hit             bool   // the value that comes next is that of the key on the path
	number          []byte

	hitTask bool   // the value that comes next is params.task
	task    []byte // so far
	put     string // goes before the next byte
}

var tokenPath = [...]string{"params", "_meta", tokenKey}

const taskKey = "task" // beside _meta

// next scans b until there is something to put before b[n], and returns that. Where there is
// nothing, n is len(b). With something, b[n] has been scanned as well.
func (s *tokenScanner) next(b []byte) (n int, put string) {
	for i, c := range b {
		if s.quoted {
			s.inString(c)
			s.inTask(c)
			continue
		}
		if s.put != "" { // the end of params.task, or what is there is no JSON
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

// inTask keeps what there is of params.task.
func (s *tokenScanner) inTask(c byte) {
	if len(s.task) == 0 {
		return // outside begins it
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
		s.matching = len(s.key) <= len(tokenKey) // the longest
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
		here := s.depth == s.base+s.level+1 // in the object whose keys are looked at
		s.quoted, s.matching, s.key = true, here, s.key[:0]
	case ':': // only behind a key
		s.hit = s.matching && string(s.key) == tokenPath[s.level]
		s.hitTask = s.matching && s.level == 1 && string(s.key) == taskKey
	case ',':
		s.hit, s.hitTask = false, false
	case '{', '[':
		if s.hitTask && c == '{' {
			s.task = append(s.task[:0], 0) // a mark; inTask adds the brace
		}
		if s.hit && s.level < len(tokenPath)-1 {
			s.level++ // in an array no key comes
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

// keepToken returns the params of a request with a copy of its token, where that is needed.
func keepToken(params []byte) []byte {
	if !bytes.Contains(params, []byte(tokenKey)) && !bytes.Contains(params, []byte(`"`+taskKey+`"`)) {
		return params
	}
	s := tokenScanner{base: -1, level: 1, begun: true} // the message is around them
	var out, held []byte                               // held has been scanned and not been written
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

// A tokenBody is the body of a request with copies of its tokens, made as it is read.
type tokenBody struct {
	io.ReadCloser
	scan tokenScanner
	put  []byte // goes out next
	rest []byte // has been read and not scanned
	err  error  // comes after rest
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
	// The byte at which the copy was found to be due has been scanned, so it goes with it.
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

// The SDK decodes an integer token as a float64, which is exact up to 2^53. The bytes of a
// larger one are gone before any middleware runs, so WrapTransport and WrapHTTP, which see
// the message before, put them into _meta beside it. A client that does so itself gains
// nothing: the copy must round to the token.
const (
	tokenKey      = "progressToken"
	exactTokenKey = "io.github.tooldeadline/progressToken"
)

// isLargeInteger reports whether s is an integer that would not come out of a float64 as it
// went in: because that does not hold it, or because it is written with an exponent.
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

// askedKey is where WrapTransport and WrapHTTP put the "task" of a call's params, which the SDK does
// not decode, and wrappedKey is where WrapTransport says in initialize that it is there.
const (
	askedKey   = "io.github.tooldeadline/task"
	wrappedKey = "io.github.tooldeadline/wrapped"
)

// exactToken returns the token of a call as it came. Where it had to be restored, it is put
// back for the tool too, which may echo it in notifications of its own.
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
