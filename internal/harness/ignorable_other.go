//go:build !unix

package harness

import "os"

var ignorable = []os.Signal{os.Interrupt}
