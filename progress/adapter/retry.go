package adapter

import (
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// ConnectTimeout is the default limit of each phase of connecting.
const ConnectTimeout = 5 * time.Second

// TimedOut reports whether err is the error of a request that a limit stopped. Such a request may
// be sent again if it only reads. TimedOut waits for the methods of err.
func TimedOut(err error) bool {
	var stop *request.Error
	return errors.As(err, &stop) && stop.Timeout()
}

// Permanent reports whether a connection that failed with err will fail again: the command
// was not found or may not be executed, or the socket is not there. Permanent waits for the methods of err.
func Permanent(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// Repeatable returns a function that reports whether requests of a method may be sent again: the
// method is one of methods, or matches one of them that is a prefix with a star, such as
// "resources/*". A tools/call must be named: no pattern matches it, since it may do something; see
// [Hints]. Two kinds of requests may never be sent again, even if methods names them: a request of
// the handshake, which belongs to a connection, and one that opens a stream.
func Repeatable(methods ...string) func(method string) bool {
	methods = slices.Clone(methods)
	return func(method string) bool {
		switch method {
		case "tools/call":
			return slices.Contains(methods, method)
		case "initialize", "server/discover", "subscriptions/listen":
			return false
		}
		return slices.ContainsFunc(methods, func(m string) bool {
			prefix, all := strings.CutSuffix(m, "*")
			return m == method || all && strings.HasPrefix(method, prefix)
		})
	}
}
