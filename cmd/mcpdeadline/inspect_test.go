package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The page shows a running call, and then its outcome.
func TestInspect(t *testing.T) {
	t.Parallel()
	h := connect(t, "-inspect", ":0", "-idle", "3s")
	url := ""
	eventually(t, "the address", func() bool {
		_, rest, found := strings.Cut(h.stderr(), "running calls: ")
		url, _, _ = strings.Cut(rest, "\n")
		return found && strings.Contains(rest, "\n")
	})
	page := func() string {
		res, err := http.Get(url + "?format=text")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	page() // recording begins with the first look
	answer := h.start("1", "hang", `{}`, "")
	eventually(t, "the call", func() bool { return strings.Contains(page(), "hang") })
	h.await(answer, "hang")
	eventually(t, "its outcome", func() bool { return strings.Contains(page(), "idle") })
}
