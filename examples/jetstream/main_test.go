package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// The test binary is also the program, and each of its workers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		main()
	}
	harness.Main(m, map[string]func(){"jetstream": main}, harness.Options{})
}

func command(t *testing.T, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	cmd, out = harness.Command("jetstream", args...), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	tmp := t.TempDir() // where it has what it deletes at the end, if it is not killed
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp, "TMP="+tmp)
	return cmd, out
}

// nothingLeft checks that no temporary file is left in the directory of a command.
func nothingLeft(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir := strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMP=")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

// exitCode returns the exit code of a command that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// tree returns a directory with that many files, of different sizes. Those beyond the first 150 are small.
func tree(t *testing.T, files int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		name, size := filepath.Join(dir, fmt.Sprint("sub", i%7), fmt.Sprint("file", i)), i*i*10
		if i >= 150 {
			size = 10
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte(fmt.Sprintln(i)), size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every file is compressed, and none twice, although one worker is killed in the middle of a file and
// another hangs.
func TestDemo(t *testing.T) {
	t.Parallel()
	const files = 150
	from, to := tree(t, files), filepath.Join(t.TempDir(), "new")
	cmd, out := command(t, "-out", to, from)
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for _, want := range []string{
		`worker 2 is in the middle of (\S+), and killed \(SIGKILL\)`,
		`worker 3 is stopped in (\S+): No progress for 1s \(idle timeout\)`,
	} {
		// Whatever has happened to it, another has done it.
		m := regexp.MustCompile(want).FindStringSubmatch(out.String())
		if m == nil || !regexp.MustCompile(`worker [13]: `+m[1]+`, delivery \d+: done`).MatchString(out.String()) {
			t.Errorf("no line with %s, or none of another delivery, in\n%s", want, out)
		}
	}
	if want := fmt.Sprintf("%d files, all done, none twice", files); !strings.Contains(out.String(), want) {
		t.Errorf("no line with %q in\n%s", want, out)
	}
	nothingLeft(t, cmd)
	found, err := filesBelow(to)
	if err != nil || len(found) != files {
		t.Errorf("%d files, %v", len(found), err)
	}
	for _, file := range found {
		if err := same(filepath.Join(from, strings.TrimSuffix(file, ".gz")), filepath.Join(to, file)); err != nil {
			t.Error(err)
		}
	}
}

// The program leaves the server of -server as it was.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	cmd, out := command(t, "-server", s.ClientURL(), tree(t, 3))
	if code := exitCode(t, cmd.Run()); code != 0 || !strings.Contains(out.String(), "3 files, all done, none twice") ||
		!strings.Contains(out.String(), "too few files") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	nothingLeft(t, cmd)
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		t.Errorf("stream %s is left", name)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	empty, full := t.TempDir(), tree(t, 1)
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":                {[]string{"-h"}, 0, "Usage: jetstream [-server URL] [-out DIR] [DIR]"},
		"unknown flag":        {[]string{"-x"}, 2, "Usage: jetstream"},
		"two trees":           {[]string{"a", "b"}, 2, "2 arguments: want at most one directory"},
		"no such tree":        {[]string{filepath.Join(empty, "no")}, 2, "cannot be compressed"},
		"an empty tree":       {[]string{empty}, 2, "cannot be compressed: no files; want a directory with files in it"},
		"output is not empty": {[]string{"-out", full, full}, 2, `is not empty: it has "sub0"`},
		"no such server":      {[]string{"-server", "nats://127.0.0.1:1", full}, 1, "nats://127.0.0.1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := command(t, test.args...)
			if code := exitCode(t, cmd.Run()); code != test.code || !strings.Contains(out.String(), test.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, test.want, out)
			}
		})
	}
}

// verify fails if a compressed file is missing, wrong or unexpected, or was not done exactly once.
func TestVerify(t *testing.T) {
	t.Parallel()
	from := tree(t, 3)
	files, err := filesBelow(from)
	if err != nil {
		t.Fatal(err)
	}
	first := filepath.FromSlash(files[0])
	for name, test := range map[string]struct {
		spoil func(*demo)
		want  string // in the error, "" is none
	}{
		"nothing":      {func(*demo) {}, ""},
		"missing":      {func(d *demo) { os.Remove(filepath.Join(d.to, first+".gz")) }, "no such file|cannot find"},
		"not gzip":     {func(d *demo) { os.WriteFile(filepath.Join(d.to, first+".gz"), []byte("x"), 0o644) }, "EOF|gzip"},
		"another file": {func(d *demo) { os.WriteFile(filepath.Join(d.to, "x"), nil, 0o644) }, "there are 4 compressed files, want 3"},
		"other contents": {func(d *demo) {
			os.Remove(filepath.Join(d.to, first+".gz"))
			compress(t.Context(), strings.NewReader("other"), filepath.Join(d.to, unfinishedDir, "1"), filepath.Join(d.to, first+".gz"))
		}, "differs from"},
		"done twice":       {func(d *demo) { d.done[files[0]] = 2 }, "was done 2 times"},
		"done by nobody":   {func(d *demo) { d.done[files[0]] = 0 }, "was done 0 times"},
		"by one that died": {func(d *demo) { d.done[files[0]], d.rounds[files[0]] = 0, 2 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &demo{from: from, to: t.TempDir(), files: files, out: new(bytes.Buffer), rounds: map[string]int{}, done: map[string]int{}}
			for _, file := range files {
				f, err := os.Open(filepath.Join(from, filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if first, err := compress(t.Context(), f, filepath.Join(d.to, unfinishedDir, "1"), filepath.Join(d.to, filepath.FromSlash(file)+".gz")); !first || err != nil {
					t.Fatal(first, err)
				}
				d.rounds[file], d.done[file] = 1, 1
			}
			test.spoil(d)
			err := d.verify(t.Context())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !regexp.MustCompile(test.want).MatchString(err.Error())) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// If many compress the same file at the same time, exactly one reports that it did.
func TestCompressOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 20
	results := make(chan bool, n)
	for i := range n {
		go func() {
			first, err := compress(t.Context(), strings.NewReader("text"), filepath.Join(dir, unfinishedDir, fmt.Sprint(i)), filepath.Join(dir, "text.gz"))
			if err != nil {
				t.Error(err)
			}
			results <- first
		}()
	}
	firsts := 0
	for range n {
		if <-results {
			firsts++
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, unfinishedDir))
	if firsts != 1 || err != nil || len(left) != 0 {
		t.Errorf("%d have done it, %d unfinished files are left, %v", firsts, len(left), err)
	}
}

// A file that is given up halfway is not put in place.
func TestCompressGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	errGivenUp := errors.New("given up")
	src := &endless{strings.NewReader("text"), func() { cancel(errGivenUp) }}
	first, err := compress(ctx, src, filepath.Join(dir, unfinishedDir, "1"), filepath.Join(dir, "text.gz"))
	if first || !errors.Is(err, errGivenUp) {
		t.Error(first, err)
	}
	if files, err := filesBelow(dir); err == nil {
		t.Errorf("left: %q", files)
	}
}
