package request_test

import (
	"fmt"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

func TestHints(t *testing.T) {
	var h request.Hints
	h.Tool("reads", true, false)
	h.Tool("idempotent", false, true)
	h.Tool("writes", false, false)
	for tool, want := range map[string]bool{"reads": true, "idempotent": true, "writes": false, "unknown": false} {
		if h.Repeatable(tool) != want {
			t.Errorf("%s: want %v", tool, want)
		}
	}
	h.Tool("reads", false, false)
	if h.Repeatable("reads") {
		t.Error("a tool that has changed its mind is repeated")
	}
	h.Forget()
	if h.Repeatable("idempotent") {
		t.Error("a tool is known that was forgotten")
	}
	for i := range 11_000 {
		h.Tool(fmt.Sprint(i), true, false)
	}
	known := 0
	for i := range 11_000 {
		if h.Repeatable(fmt.Sprint(i)) {
			known++
		}
	}
	if known != 10_000 {
		t.Errorf("%d are known", known)
	}
}

func ExampleHints() {
	var hints request.Hints
	hints.Tool("search", true, false) // from the result of tools/list
	fmt.Println(hints.Repeatable("search"), hints.Repeatable("delete"))
	// Output: true false
}
