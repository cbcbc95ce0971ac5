package waits

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sync/errgroup"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

var record = flag.String("waits.record", "", "run the scripts that match, of programs that are installed, and write "+recordings)

// TestRecord runs the programs of the tables, one after the other, and keeps how they look where they stay. What is not
// installed, or not asked for, keeps its recording.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip(`"make record" runs it`)
	}
	wanted := regexp.MustCompile(*record)
	tools := buildAttacks(t)
	old := readRecordings(t)
	lines := make([][]byte, 0, 2*len(programs)+len(attacks)) // never moved
	var all errgroup.Group
	all.SetLimit(10)
	keep := func(on, script string, want found) {
		at := len(lines)
		lines = append(lines, nil)
		all.Go(func() error {
			r, ok := old[on+"\x00"+script]
			if path, err := exec.LookPath(programOf(script)); err == nil && wanted.MatchString(script) {
				seen, fits := recordOne(t, on, strings.ReplaceAll(script, "$C", tools), want)
				if seen.Script, seen.With = script, version(path); fits || !ok {
					r, ok = seen, true
				}
				if !fits {
					got, prompt := seen.finding()
					t.Errorf("%s, %s: found %v %q, want %v", on, script, got, prompt, want)
				}
			}
			if !ok {
				return nil
			}
			line, err := json.Marshal(r)
			if err == nil {
				lines[:cap(lines)][at] = append(line, '\n')
			}
			return err
		})
	}
	for _, p := range programs {
		keep("pipe", p.script, p.pipe)
		keep("terminal", p.script, p.terminal)
	}
	for _, a := range attacks {
		keep("attack", a.script, no)
	}
	if err := errors.Join(all.Wait(), os.WriteFile(recordings, bytes.Join(lines, nil), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// recordOne runs a script until it is found to do what is wanted, or, if that is nothing, for a while.
func recordOne(t *testing.T, on, script string, want found) (r recording, fits bool) {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = t.TempDir()
	output := new(newestOutput)
	var stdin *os.File
	if on == "terminal" {
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		stdin = slave
		go output.read(master)
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		cmd.Stdin, stdin = r, r
		for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer r.Close()
			*to = w
			go output.read(r)
		}
	}
	in, ok := InputOf(stdin)
	if !ok {
		t.Fatal("no input")
	}
	started, err := proctree.Start(context.Background(), cmd, proctree.Descendants)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		started.Kill(time.Now().Add(10 * time.Second))
		started.Close()
	}()
	waits := want == certainly || want == probably
	settled, given := time.Now().Add(4*time.Second), time.Now().Add(40*time.Second)
	for before := no; ; time.Sleep(LookEvery) {
		r = look(started.(tree), in, output, on)
		copied := recording{On: on, Output: r.Output, View: view{Members: r.View.Members, Answers: r.View.Answers}}
		got, _ := copied.finding()
		switch {
		case waits && got == want && before == want:
			return r, true
		case waits && time.Now().After(given), !waits && time.Now().After(settled):
			return r, got == want || !waits && got == no || want == probably && got == certainly
		}
		before = got
	}
}

func look(t tree, in Input, output *newestOutput, on string) recording {
	v := view{Answers: make(map[string]json.RawMessage), live: procfs.Unhurried()}
	members, _ := t.Members()
	l := &waitLook{input: in.file, members: members, reader: &v, patience: t.Patience()}
	read := l.look()
	l.classify(read)
	for _, p := range read {
		v.Members = append(v.Members, newMember(p))
	}
	v.live = nil
	return recording{On: on, Arch: runtime.GOARCH, Output: output.last(), View: v}
}

// A newestOutput has the end of the output that came last.
type newestOutput struct {
	mu   sync.Mutex
	text string
}

func (o *newestOutput) read(r io.Reader) {
	var own []byte
	for buf := make([]byte, 4<<10); ; {
		n, err := r.Read(buf)
		if err != nil {
			return
		}
		own = append(own, buf[:n]...)
		own = own[max(0, len(own)-4<<10):]
		o.mu.Lock()
		o.text = string(bytes.ToValidUTF8(own, nil))
		o.mu.Unlock()
	}
}

func (o *newestOutput) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}

// version returns the package that has a program, or what that says of itself.
func version(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if owner, err := exec.Command("dpkg", "-S", path).Output(); err == nil {
		name, _, _ := strings.Cut(string(owner), ":")
		if v, err := exec.Command("dpkg-query", "-W", "-f", "${Package} ${Version}", name).Output(); err == nil {
			return string(v)
		}
	}
	for _, arg := range []string{"--version", "version"} {
		if v, err := exec.Command(path, arg).Output(); err == nil {
			line, _, _ := strings.Cut(string(v), "\n")
			return filepath.Base(path) + " " + line
		}
	}
	return ""
}

// buildAttacks builds the programs of testdata/attacks.
func buildAttacks(t *testing.T) (dir string) {
	dir = t.TempDir()
	sources, _ := filepath.Glob("testdata/attacks/*")
	for _, source := range sources {
		name, ext, _ := strings.Cut(filepath.Base(source), ".")
		build := exec.Command("cc", "-w", "-o", filepath.Join(dir, name), source, "-lpthread", "-lrt")
		if ext == "go" {
			build = exec.Command("go", "build", "-race=false", "-o", filepath.Join(dir, name), source)
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// programOf returns the program that a script is about, which may not be installed.
func programOf(script string) string {
	for _, p := range []string{"jshell", "jdb", "java X.java", "npm", "go run", "gofmt", "rustc", "jq", "gcc", "as -o", "zsh", "fish", "busybox", "patch", "xxd", "unzip",
		"strace", "script", "expect", "socat", "docker", "wget", "curl", "man ls", "gdb", "vi", "ed", "ex", "openssl", "ssh-keygen", "node", "python3", "bc", "sqlite3", "tclsh",
		"gpg", "vim", "perl", "git", "top", "watch", "make", "su", "tmux"} {
		name := strings.Fields(p)[0]
		script := strings.TrimPrefix(script, "exec ")
		if strings.HasPrefix(script, p) || strings.Contains(script, "; "+p) || strings.Contains(script, "xterm "+p) || strings.Contains(script, "mod "+p) || strings.Contains(script, `["`+p+`"`) {
			return name
		}
	}
	return "sh"
}
