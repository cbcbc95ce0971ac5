//go:build linux

package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// beatEnv makes this test binary "deadline --beat DETAIL", which is a program of another module.
const beatEnv = "DOCS_TEST_BEAT"

func init() {
	if os.Getenv(beatEnv) == "" {
		return
	}
	err := notify.Send("WATCHDOG=1", "STATUS="+os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// SPEC 18.3: the programs of docs/beats.md are heard, each where its tool is installed.
func TestBeats(t *testing.T) {
	page, err := os.ReadFile("docs/beats.md")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport %s=1\nexec '%s' \"$@\"\n", beatEnv, exe)
	if err := os.WriteFile(filepath.Join(bin, "deadline"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		language, tool, file string
		build                []string
		run                  []string
	}{
		{language: "sh", tool: "sh", file: "beats.sh", run: []string{"sh", "beats.sh"}},
		{language: "python", tool: "python3", file: "beats.py", run: []string{"python3", "beats.py"}},
		{language: "rust", tool: "rustc", file: "beats.rs", build: []string{"rustc", "beats.rs"}, run: []string{"./beats"}},
		{language: "js", tool: "node", file: "beats.js", run: []string{"node", "beats.js"}},
		{language: "java", tool: "java", file: "Beats.java", run: []string{"java", "Beats.java"}},
	} {
		t.Run(tt.language, func(t *testing.T) {
			t.Parallel()
			block := regexp.MustCompile("(?s)```" + tt.language + "\n(.*?)```").FindSubmatch(page)
			if block == nil {
				t.Fatalf("docs/beats.md has no %s", tt.language)
			}
			if _, err := exec.LookPath(tt.tool); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), block[1], 0o600); err != nil {
				t.Fatal(err)
			}
			command := func(argv []string) *exec.Cmd {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir = dir
				cmd.Env = append(cmd.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
				return cmd
			}
			if tt.build != nil {
				if out, err := command(tt.build).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			r, err := procgroup.Run(t.Context(), command(tt.run), procgroup.Notify{Socket: true}, procgroup.Limits{Total: 5 * time.Minute})
			if want := (procgroup.Notices{Status: "c"}); err != nil || r.Notices != want {
				t.Errorf("%v, %+v\n%s", err, r.Notices, r.Combined)
			}
		})
	}
}
