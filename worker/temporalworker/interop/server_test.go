//go:build !external

package interop

import (
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/temporaltest"
)

// serve starts a server in memory.
func serve() (address, namespace string) {
	s := temporaltest.NewServer(temporaltest.WithBaseClientOptions(client.Options{Logger: quiet}))
	return s.GetFrontendHostPort(), s.GetDefaultNamespace()
}
