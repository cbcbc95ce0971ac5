//go:build external

package interop

import (
	"cmp"
	"os"
)

// serve returns the server that is there, as the CLI of Temporal takes it from the environment.
func serve() (address, namespace string) {
	return os.Getenv("TEMPORAL_ADDRESS"), cmp.Or(os.Getenv("TEMPORAL_NAMESPACE"), "default")
}
