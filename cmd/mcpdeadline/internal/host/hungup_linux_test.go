package host_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
)

// The end of stdin is seen while what is before it waits, over pipes and sockets, and no earlier.
func TestHungUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	gone := host.HungUp(r)
	_, _ = w.WriteString("more")
	if gone() {
		t.Error("it has gone")
	}
	w.Close()
	if !gone() {
		t.Error("it has not gone")
	}
	if host.HungUp(strings.NewReader("")) != nil {
		t.Error("no file")
	}
}
