package inspect_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// Every start of a program that imports the package pays for its initialization, so the page is parsed later.
func TestInitIsCheap(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := regexp.MustCompile(`init \S+/timeout/inspect @.*, (\d+) allocs`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("no trace of the package\n%s", out)
	}
	if n, err := strconv.Atoi(string(found[1])); err != nil || n > 300 {
		t.Errorf("%s allocations, %v", found[1], err)
	}
}
