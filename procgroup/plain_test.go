//go:build linux

package procgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
)

// A start of this binary takes five times as long with the race detector as without it, and there are hundreds. So those
// modes that do not run this package are run by the same tests without it, a file that plainEnv names, for hosts too. It
// is built at its first use. Where it cannot be, because the go command or the sources are not there, as with a binary
// that was built before, the commands are this binary in all modes.
const plainEnv = "PROCGROUP_TEST_PLAIN"

// initPlain names the file, and returns a function that removes it.
func initPlain() (remove func()) {
	_, noGo := exec.LookPath("go")
	_, noSource := os.Stat("plain_test.go")
	if !hasRaceDetector() || noGo != nil || noSource != nil {
		return func() {}
	}
	dir, err := os.MkdirTemp("", "procgroup")
	if err != nil {
		return func() {}
	}
	os.Setenv(plainEnv, filepath.Join(dir, "plain.test"))
	return func() { _ = os.RemoveAll(dir) }
}

func hasRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// plain is the path of the binary that modes are run by that do not run this package.
var plain = sync.OnceValue(func() string {
	path := os.Getenv(plainEnv)
	if path != "" && os.Getenv(modeEnv) == "" {
		_ = exec.Command("go", "test", "-race=false", "-vet=off", "-ldflags=-w", "-c", "-o", path, ".").Run()
	}
	if _, err := os.Stat(path); err != nil {
		return os.Args[0]
	}
	return path
})
