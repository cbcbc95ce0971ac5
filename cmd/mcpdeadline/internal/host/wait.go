package host

import (
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// The limits of the waits for a host that may be dead.
const (
	ReadLimit   = time.Second            // to read what is written to it at the end
	RefuseLimit = 2 * time.Second        // to send a first request, which is answered with why the server cannot be started
	UnreadLimit = toolcall.ShutdownLimit // to end while its messages wait for a server that does not read
)
