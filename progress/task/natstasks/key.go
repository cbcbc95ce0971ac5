package natstasks

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

// A key is the place of a record in the bucket; its name is <hash of the owner>.<replica>.<id>. A client knows only
// the rest, <replica>.<id>, so an id of another owner leads to a key that is not there.
type key struct{ name, replica string }

// taskID matches an id that may become a part of a subject: no wildcards, no further dots.
var taskID = regexp.MustCompile(`^([a-z0-9]{1,32})\.([A-Za-z0-9_-]{1,128})$`)

func keyOf(owner, id string) (key, bool) {
	m := taskID.FindStringSubmatch(id)
	if m == nil {
		return key{}, false
	}
	return key{name: hash(owner) + "." + id, replica: m[1]}, true
}

// hash returns the hash of a text that may be a token of a subject.
func hash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:])
}

// A cursor is the id after which a page begins; ids are listed in their order.
func cursorOf(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

func idOf(cursor string) (string, bool) {
	id, err := base64.RawURLEncoding.DecodeString(cursor)
	return string(id), err == nil && taskID.Match(id)
}

const (
	leaseSuffix  = "-leases"
	resultSuffix = "-results"
)

func (s *store) subject(key string) string { return "$KV." + s.opts.Bucket + "." + key }
func (s *store) leaseSubject(replica string) string {
	return "$KV." + s.opts.Bucket + leaseSuffix + "." + replica
}

// keyIn returns the key of a subject of the bucket.
func (s *store) keyIn(subject string) string { return strings.TrimPrefix(subject, s.subject("")) }
