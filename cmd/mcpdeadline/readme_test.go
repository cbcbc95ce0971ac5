package main

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/hosts"
)

var (
	argsLine  = regexp.MustCompile(`(?m)^ *"?(?:args|command)"?\s*[=:]\s*(\[.*\])$`)
	fileBlock = regexp.MustCompile("(?ms)^```json\n(\\{\n  \"timeout\".*?)^```$")
	flagRow   = regexp.MustCompile("(?m)^\\| `-([a-z-]+)")
)

// Each configuration in the README is a valid command line. Each host has one, and is named where it is not recognised.
func TestReadmeConfigurations(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	readme := read(t, "README.md")
	got := make(map[string]int)
	want := make(map[string]int)
	for _, h := range hosts.All() {
		if h.Client != "" { // it is recognised
			want[""]++
		} else {
			want[h.Name] = 1
		}
	}
	want["zed"]++ // with a URL
	for _, line := range argsLine.FindAllStringSubmatch(readme, -1) {
		var args []string
		if err := json.Unmarshal([]byte(line[1]), &args); err != nil {
			t.Fatalf("%v: %s", err, line[1])
		}
		if args[0] == "npx" { // the command, in the same list
			args = args[1:]
		}
		if args[0] != "-y" || args[1] != "mcpdeadline" {
			t.Fatalf("not started by npx -y mcpdeadline: %s", line[1])
		}
		args = args[2:]
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatalf("%v: %s", err, line[1])
		}
		got[o.host.Name]++
		if o.url == nil && o.command[0] != "npx" {
			t.Errorf("%q", o.command)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, block := range regexp.MustCompile("(?ms)^```json\n(\\{.*?)^```$").FindAllStringSubmatch(readme, -1) {
		if !json.Valid([]byte(block[1])) {
			t.Error(block[1])
		}
	}
	if _, err := parse([]string{"-config", file(t, fileBlock.FindStringSubmatch(readme)[1]), "--", "x"}, io.Discard); err != nil {
		t.Error(err)
	}
}

// The README lists every flag.
func TestReadmeFlags(t *testing.T) {
	var help strings.Builder
	_, _ = parse([]string{"-help"}, &help)
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help.String(), -1) {
		want = append(want, m[1])
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, m := range flagRow.FindAllStringSubmatch(string(text), -1) {
		got[m[1]] = true
	}
	for _, name := range want {
		if !got[name] {
			t.Errorf("-%s is not in the README", name)
		}
	}
	if len(want) < 10 || len(got) != len(want) {
		t.Errorf("%d flags, %d in the README", len(want), len(got))
	}
}
