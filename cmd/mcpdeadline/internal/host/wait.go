package host

import (
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Limits on the time for which the proxy waits for a host that may have ended.
const (
	ReadLimit   = time.Second            // for the host to read the last messages of the proxy
	RefuseLimit = 2 * time.Second        // for the first request, whose answer says why the server cannot be started
	UnreadLimit = toolcall.ShutdownLimit // for a server to read a message of the host, before the end of stdin counts
)
