package callsites_test

import (
	"fmt"
	"os"
	"testing"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
)

func TestMain(m *testing.M) {
	if os.Getenv("CALLSITES_SLEEP") != "" {
		fmt.Println("ready")
		select {}
	}
	os.Exit(m.Run())
}

// all has the rows of the module, which stand in a file for each package.
var all = Table{}

func add(rows Table) {
	for name, row := range rows {
		if _, twice := all[name]; twice {
			panic(name + " has two rows")
		}
		all[name] = row
	}
}

// SPEC 3.24.
func TestCallSites(t *testing.T) {
	all.Test(t, "../../heartbeat/...", "../../timeout/...", "../../progress/...", "../../stream/...", "../../worker/lease")
}

// A place that a package adds has to have a row. Those of commands are attacked where the simulated machine is.
func TestComplete(t *testing.T) {
	all.Complete(t, "../../heartbeat/...", "../../timeout/...", "../../progress/...", "../../stream/...", "../../worker/lease")
}
