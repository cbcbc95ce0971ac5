package host

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The nearest ancestor that is no launcher, unless the system names the peer.
func TestNearest(t *testing.T) {
	for _, tc := range []struct {
		name  string
		chain string // command lines, from the parent up
		peer  int    // its place, from 1
		want  int
	}{
		{"the parent", "claude", 0, 0},
		{"no ancestor", "", 0, -1},
		{"sh", "sh -c server|codex", 0, 1},
		{"a login shell", "-zsh|iTerm2", 0, 1},
		{"npx by its title", "sh -c server|npm exec server|node /usr/bin/gemini", 0, 2},
		{"npx by its script", "sh -c server|node /usr/lib/node_modules/npm/bin/npx-cli.js -y server|Cursor Helper", 0, 2},
		{"node with flags", "node --no-warnings /usr/local/bin/npx server|Claude", 0, 1},
		{"a host in node", "node /usr/local/bin/gemini", 0, 0},
		{"a host in python", "python3.12 -m host", 0, 0},
		{"pipx", "python3.12 /usr/local/bin/pipx run server|codex", 0, 1},
		{"on Windows", `C:\Windows\System32\cmd.exe /c server|C:\Program Files\nodejs\node.exe C:\npm\npx-cli.js server|Claude.exe`, 0, 2},
		{"uvx", "uv tool uvx server|uvx server|goose", 0, 2},
		{"only launchers", "sh|npx", 0, -1},
		{"the peer is above a host", "node gemini|codex", 2, 1},
		{"the peer is a launcher", "sh|codex", 1, 0},
		{"the peer is no ancestor", "sh|codex", 9, 1},
	} {
		var chain []program
		for i, line := range strings.Split(tc.chain, "|") {
			if line != "" {
				args := strings.Split(strings.ReplaceAll(line, "Program Files", "Programs"), " ")
				if strings.HasPrefix(line, "npm exec") { // one string, and the name of the program
					chain = append(chain, program{i + 1, "node", []string{line}})
					continue
				}
				chain = append(chain, program{i + 1, plainBase(args[0]), args})
			}
		}
		if got := nearest(chain, tc.peer); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// plainBase is the name of a program as systems show it.
func plainBase(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

func TestParseArgs(t *testing.T) {
	raw := func(n uint32, text string) []byte { return append(binary.NativeEndian.AppendUint32(nil, n), text...) }
	for _, tc := range []struct {
		name string
		raw  []byte
		want []string
	}{
		{"with padding and environment", raw(2, "/bin/node\x00\x00\x00\x00node\x00x.js\x00HOME=/\x00"), []string{"node", "x.js"}},
		{"an empty argument", raw(3, "/bin/node\x00node\x00\x00b\x00"), []string{"node", "", "b"}},
		{"cut off", raw(2, "/bin/node\x00node\x00x.j"), []string{"node"}},
		{"too short", []byte{1, 0}, nil},
		{"nothing", raw(1<<31, ""), nil},
	} {
		if diff := cmp.Diff(tc.want, parseArgs(tc.raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00/bin/sh\x00\x00sh\x00-c\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, arg := range parseArgs(b) {
			if !bytes.Contains(b, []byte(arg+"\x00")) {
				t.Errorf("%q is not in %q", arg, b)
			}
		}
	})
}
