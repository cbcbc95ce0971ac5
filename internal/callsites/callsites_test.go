package callsites_test

import (
	"maps"
	"testing"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
)

// all has the rows of the module, which stand in a file for each package.
var all = Table{}

func add(rows Table) { maps.Copy(all, rows) }

// SPEC 3.24.
func TestCallSites(t *testing.T) {
	all.Test(t, "../../...")
}
