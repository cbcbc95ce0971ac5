package natstasks

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

// A key identifies a record in the bucket by its name, <hash of the owner>.<replica>.<id>. A client sends only
// <replica>.<id>. The hash comes from the owner of the request, so the id of another owner's task leads to no record.
type key struct{ name, replica string }

// taskID matches <replica>.<id>, the ID of a task. Such an ID can be a part of a subject, because it has no wildcards
// and no further dots.
var taskID = regexp.MustCompile(`^([a-z0-9]{1,32})\.([A-Za-z0-9_-]{1,128})$`)

func keyOf(owner, id string) (key, bool) {
	m := taskID.FindStringSubmatch(id)
	if m == nil {
		return key{}, false
	}
	return key{name: hash(owner) + "." + id, replica: m[1]}, true
}

// hash returns the hash of an owner, in hexadecimal digits, which can be a token of a subject.
func hash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:])
}

// cursorOf returns the cursor of a page that begins after the task with this id.
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

// keyIn returns the name of the key in a subject of the bucket.
func (s *store) keyIn(subject string) string { return strings.TrimPrefix(subject, s.subject("")) }
