package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestFigures(t *testing.T) {
	for want, p := range map[string]mcp.ProgressNotificationParams{
		"3":        {Progress: 3.000002},
		"0":        {Progress: 5e-6},
		"2.5 of 7": {Progress: 2.5, Total: 7},

		"1.405 of 20":         {Progress: 1.4047172940000001, Total: 20},
		"2000000 of 10000000": {Progress: 2e6, Total: 1e7},
	} {
		if got := figures(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"main.go\tline\n2":      "main.go line 2",
		"\x1b[31mred\a\u202eé漢": "[31mredé漢",
		"\xff":                  "\ufffd",
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A beat that says nothing, such as one during a compilation, is no line, also as the first one.
func TestLines(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	l := &lines{out: out}
	for _, p := range []mcp.ProgressNotificationParams{
		{}, {Progress: 1e-6}, {Progress: 2e-6, Message: "linking"}, {Progress: 3e-6}, {Total: 7}, {Progress: 3, Total: 7}, {Progress: 3.000001, Total: 7},
	} {
		l.update(&p)
	}
	got, err := os.ReadFile(out.Name())
	if want := "progress: 0 linking\nprogress: 0 of 7 \nprogress: 3 of 7 \n"; err != nil || string(got) != want {
		t.Errorf("%v %q, want %q", err, got, want)
	}
}
