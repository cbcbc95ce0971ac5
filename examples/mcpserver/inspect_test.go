package main

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// With -inspect the page shows a call while it runs, and it is not where the clients are.
func TestInspect(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	stop, err := servePage("127.0.0.1:0", &log, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(log.String()), "running calls: ")
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if page, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || !strings.Contains(string(page), "running, watched for") {
		t.Errorf("%s: %s", res.Status, page)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if res, err := http.Get(url); err == nil {
		res.Body.Close()
		t.Error("answers after its end")
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:no"} {
		if stop, err := servePage(addr, io.Discard, slog.New(slog.DiscardHandler)); err == nil {
			stop()
			t.Errorf("%s is an address", addr)
		}
	}
}
