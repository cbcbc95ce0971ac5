package oteltimeout

import (
	"runtime/debug"
	"sync"
)

// scope is the path of this package, and of its module.
const scope = "github.com/tooldeadline/tooldeadline/oteltimeout"

// version returns the version of this module in the program. Readers of the telemetry can infer from it which names
// to expect.
var version = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
})

// devel is the version if the build has none: in this module's own tests, and in a program that replaces the module
// by a directory. The go command uses the same word.
const devel = "(devel)"

// versionIn returns the version of this module in a program with the given build information, which may be nil.
func versionIn(info *debug.BuildInfo) string {
	if info == nil {
		return devel
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != scope {
			continue
		}
		if m.Replace != nil {
			m = m.Replace // the replacement is what runs
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return devel
}
