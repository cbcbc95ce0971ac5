package notify

import (
	"errors"
	"os"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// ErrNoSupervisor is the error of [Send] in a program without a supervisor: NOTIFY_SOCKET is not set.
var ErrNoSupervisor = errors.New("notify: there is no supervisor: NOTIFY_SOCKET is not set")

// Send sends states such as "READY=1" or "STATUS=loading" to the supervisor, in one datagram with a state on each
// line. It waits for a supervisor that does not read, for at most a tenth of a second. The error is [ErrNoSupervisor]
// if NOTIFY_SOCKET is not set, and otherwise the reason why the datagram could not be sent. Send is safe for
// concurrent use.
func Send(states ...string) error {
	addr := os.Getenv("NOTIFY_SOCKET")
	if addr == "" {
		return ErrNoSupervisor
	}
	return send(addr, strings.Join(states, "\n"))
}

// say sends m to the supervisor. It drops the error, because a supervisor that has ended needs no message.
func say(to sdnotify.Supervisor, m sdnotify.Message) { _ = send(to.Addr, m.String()) }

// send sends a datagram. Tests in simulated time replace it.
var send = sdnotify.Send
