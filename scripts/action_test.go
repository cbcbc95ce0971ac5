package scripts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const actionScript = "action"

// An action is a runner's folder with the action in it.
type action struct {
	dir  string
	tmp  string
	env  []string
	path string // GITHUB_PATH
}

func newAction(t *testing.T, sums string, env ...string) *action {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("runners have it, this machine has not:", err)
		}
	}
	a := &action{dir: t.TempDir(), tmp: t.TempDir()}
	a.path = filepath.Join(a.tmp, "GITHUB_PATH")
	if sums != "" {
		if err := os.WriteFile(filepath.Join(a.dir, "action.sums"), []byte(sums), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.env = append(os.Environ(), "GITHUB_ACTION_PATH="+a.dir, "RUNNER_TEMP="+a.tmp, "GITHUB_PATH="+a.path,
		"GITHUB_WORKSPACE="+a.tmp, "RUNNER_OS=Linux", "RUNNER_ARCH=X64")
	a.env = append(a.env, env...)
	return a
}

func (a *action) run(t *testing.T) (code int, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", actionScript)
	cmd.Env = a.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

const archive = "tooldeadline_v1.2.3_linux_amd64.tar.gz"

// pack returns an archive with a program.
func pack(t *testing.T, program string) []byte {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	w := tar.NewWriter(gz)
	if err := w.WriteHeader(&tar.Header{Name: strings.TrimSuffix(archive, ".tar.gz") + "/deadline", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// The program in the archives of these tests says how it was called, and runs its command.
const fakeDeadline = `#!/bin/sh
echo "deadline $1 $2 $3 $4 $5 $6"
shift 6
exec "$@"
`

// SPEC 17.1: the action runs what its own checksums name, and nothing else, and no input is part of a script.
func TestAction(t *testing.T) {
	good, tampered := pack(t, fakeDeadline), pack(t, "#!/bin/sh\necho tampered\n")
	sums := func(data []byte) string {
		return fmt.Sprintf("%064x  tooldeadline_v1.2.3_darwin_arm64.tar.gz\n%x  %s\n", 1, sha256.Sum256(data), archive)
	}
	for _, tc := range []struct {
		name   string
		served []byte
		sums   string
		env    []string
		code   int
		says   string
		path   bool
	}{
		{"only installed", good, sums(good), nil, 0, "", true},
		{"a command", good, sums(good), []string{"DEADLINE_RUN=echo one\necho two", "DEADLINE_IDLE=5m", "DEADLINE_TOTAL=1h"},
			0, "deadline -v -k 30s --idle 5m 1h\none\ntwo\n", true},
		{"a command that fails", good, sums(good), []string{"DEADLINE_RUN=false | cat\necho reached"}, 1, "deadline -v -k 30s --idle 10m 0\n", true},
		{"a command that is stopped", good, sums(good), []string{"DEADLINE_RUN=exit 124"}, 124,
			"deadline -v -k 30s --idle 10m 0\n::error title=deadline::stopped after 10m without output, or 0 in total\n", true},
		{"an input that is no duration", good, sums(good), []string{"DEADLINE_RUN=echo ran", "DEADLINE_IDLE=$(echo evil)"}, 0,
			"deadline -v -k 30s --idle $(echo evil) 0\nran\n", true},
		{"a tampered archive", tampered, sums(good), []string{"DEADLINE_RUN=echo ran"}, 1,
			fmt.Sprintf("::error title=deadline::URL has the SHA-256 sum %x instead of %x\n", sha256.Sum256(tampered), sha256.Sum256(good)), false},
		{"half an archive", good[:len(good)/2], sums(good), nil, 1,
			fmt.Sprintf("::error title=deadline::URL has the SHA-256 sum %x instead of %x\n", sha256.Sum256(good[:len(good)/2]), sha256.Sum256(good)), false},
		{"no archive", nil, sums(good), nil, 1, "::error title=deadline::cannot fetch URL\n", false},
		{"no release", good, "", nil, 1, "::error title=deadline::this commit is no release of the action; use a tag, such as tooldeadline/tooldeadline@action-v0\n", false},
		{"an archive that is not there", good, sums(good), []string{"RUNNER_OS=Windows"}, 1, "::error title=deadline::action.sums has no archive for windows_amd64\n", false},
		{"another system", good, sums(good), []string{"RUNNER_OS=Plan9"}, 1, "::error title=deadline::there is no program for Plan9\n", false},
		{"another processor", good, sums(good), []string{"RUNNER_ARCH=ARM"}, 1, "::error title=deadline::there is no program for Linux on ARM\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1.2.3/"+archive || tc.served == nil {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write(tc.served)
			}))
			defer server.Close()
			a := newAction(t, tc.sums, append(tc.env, "DEADLINE_DOWNLOADS="+server.URL)...)
			code, out := a.run(t)
			if tc.code == 0 { // a second step of the job fetches nothing
				server.Close()
				code, out = a.run(t)
			}
			var kept []string
			for line := range strings.Lines(out) { // without curl's own messages
				if !strings.HasPrefix(line, "curl: ") {
					kept = append(kept, line)
				}
			}
			want := strings.ReplaceAll(tc.says, "URL", server.URL+"/v1.2.3/"+archive)
			if code != tc.code || strings.Join(kept, "") != want {
				t.Errorf("exit %d, want %d\n%s\nwant\n%s", code, tc.code, out, want)
			}
			path, _ := os.ReadFile(a.path)
			if installed := bytes.Contains(path, []byte("tooldeadline_v1.2.3_linux_amd64")); installed != tc.path {
				t.Errorf("GITHUB_PATH: %q", path)
			}
			if left, _ := filepath.Glob(filepath.Join(a.tmp, "tooldeadline", "*.gz")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// What GitHub replaces in action.yml is in no script.
func TestActionInterpolatesNothing(t *testing.T) {
	text, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "${{") {
			n++
			if !regexp.MustCompile(`^ {8}DEADLINE_[A-Z]+: \$\{\{ inputs\.[a-z]+ \}\}\n$`).MatchString(line) {
				t.Errorf("not in env: %q", line)
			}
		}
	}
	if n == 0 {
		t.Error("no inputs found")
	}
}
