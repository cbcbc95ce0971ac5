//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package capture

import "os"

func modesOf(*os.File) modes { return modes{} }
