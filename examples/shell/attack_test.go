//go:build linux

package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// An attack is a command as a careless model gives it, with the model's reactions to the answers.
type attack struct {
	name  string
	needs []string // programs
	run   args
	then  []step
	// want is of the last answer: the exit code, or -1 if the command has not ended, and a part of the text.
	code int
	want string
	by   string // who runs it: anybody, root, user; or online
	// quick attacks are tried in each run, and the others with SHELL_ATTACK_FULL alone.
	quick bool
}

type step struct {
	tool string
	in   args // without the job
}

func says(text string) step               { return step{"job_write", args{"text": text}} }
func signalled(signal string) step        { return step{"job_signal", args{"signal": signal}} }
func seen(pattern string) step            { return step{"job_read", args{"until": pattern}} }
func in(command string, more ...any) args { return with(args{"command": command}, more...) }

func with(a args, more ...any) args {
	for i := 0; i < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}

const repository = `git init -q . && git config user.email m@example.com && git config user.name M && ` +
	`for i in 1 2 3; do echo $i >f && git add f && git commit -qm $i; done && echo 4 >f && git add f; `

var attacks = []attack{
	{name: "git rebase -i HEAD~2", needs: []string{"git"}, quick: true, run: in(repository + "git stash -q; git rebase -i HEAD~2"), code: 0, want: "Successfully rebased"},
	{name: "git rebase -i, tty", needs: []string{"git", "vi"}, run: in(repository+"git stash -q; EDITOR=vi git rebase -i HEAD~2", "tty", true),
		then: []step{says(":cq\n")}, code: 1, want: "There was a problem with the editor"},
	{name: "git commit", needs: []string{"git"}, run: in(repository + "git commit"), code: 1, want: "Aborting commit due to empty commit message"},
	{name: "git commit, tty", needs: []string{"git", "vi"}, run: in(repository+"EDITOR=vi git commit", "tty", true),
		then: []step{says("ia message\x1b:wq\n")}, code: 0, want: "a message"},
	{name: "git clone over https, private", needs: []string{"git"}, run: in("git ls-remote http://127.0.0.1:$PORT/x"), code: 128, want: "fatal"},
	{name: "ssh to an unknown host", needs: []string{"ssh", "sshd"}, run: in("ssh -p $PORT 127.0.0.1 id"), code: 255, want: "Host key verification failed"},
	{name: "ssh to an unknown host, tty", needs: []string{"ssh", "sshd"}, run: in("ssh -p $PORT 127.0.0.1 id", "tty", true),
		then: []step{says("no\n")}, code: 255, want: "Host key verification failed"},
	{name: "sudo id", needs: []string{"sudo"}, by: "user", run: in("sudo id"), code: 1, want: "a terminal is required"},
	{name: "sudo id, tty", needs: []string{"sudo"}, by: "user", run: in("sudo id", "tty", true), then: []step{signalled("interrupt")}, code: 1, want: "a password is required"},
	{name: "npx of something new", needs: []string{"npx"}, by: "online", run: in("npx cowsay moo"), code: 0, want: "moo"},
	{name: "apt-get install", needs: []string{"apt-get"}, by: "root", run: in("apt-get install fortune-mod"), then: []step{says("n\n")}, code: 1, want: "Abort"},
	{name: "python3", needs: []string{"python3"}, quick: true, run: in("python3"), then: []step{{"job_write", args{"text": "print(6*7)\n", "end": true}}}, code: 0, want: "42"},
	{name: "python3, tty", needs: []string{"python3"}, run: in("python3", "tty", true), then: []step{says("print(6*7)\n"), says("exit(3)\n")}, code: 3, want: "exit(3)"},
	{name: "node", needs: []string{"node"}, run: in("node"), then: []step{{"job_write", args{"text": "console.log(6*7)\n", "end": true}}}, code: 0, want: "42"},
	{name: "node, tty", needs: []string{"node"}, run: in("node", "tty", true), then: []step{says("6*7\n"), says(".exit\n")}, code: 0, want: ""},
	{name: "sqlite3", needs: []string{"sqlite3"}, run: in("sqlite3"), then: []step{{"job_write", args{"text": "select 6*7;\n", "end": true}}}, code: 0, want: "42"},
	{name: "sqlite3, tty", needs: []string{"sqlite3"}, run: in("sqlite3", "tty", true), then: []step{says("select 6*7;\n"), says(".quit\n")}, code: 0, want: ""},
	{name: "less FILE", needs: []string{"less"}, run: in("less /etc/services /etc/passwd"), code: 0, want: "root:"},
	{name: "less FILE, tty", needs: []string{"less"}, run: in("less /etc/services", "tty", true), then: []step{says("q")}, code: 0, want: ""},
	{name: "git log, tty", needs: []string{"git", "less"}, run: in(repository+"git log --stat -p", "tty", true), then: []step{says("q")}, code: 0, want: ""},
	{name: "man ls", needs: []string{"man"}, run: in("man ls || man man"), code: -2, want: ""},
	{name: "vim", needs: []string{"vim"}, run: in("vim x", "wait_s", 5), then: []step{says("\x1b:q!\n")}, code: -2, want: ""},
	{name: "vim, tty", needs: []string{"vim"}, run: in("vim x", "tty", true), then: []step{says("ihello\x1b:wq\n")}, code: 0, want: ""},
	{name: "top", needs: []string{"top"}, run: in("top"), code: 1, want: "top: failed tty get"},
	{name: "top, tty", needs: []string{"top"}, run: in("top", "tty", true, "wait_s", 12), then: []step{says("q")}, code: 0, want: ""},
	{name: "tail -f FILE", run: in("tail -n1 -f /etc/passwd", "wait_s", 3), then: []step{signalled("interrupt")}, code: 130, want: ""},
	{name: "a dev server", needs: []string{"python3"}, run: in("python3 -um http.server 0 --bind 127.0.0.1", "wait_s", 1), then: []step{seen("Serving"), signalled("stop")}, code: 130, want: "aborted"},
	{name: "yes", quick: true, run: in("yes"), code: 153, want: "wrote more than"},
	{name: "cat /dev/urandom", run: in("cat /dev/urandom"), code: 153, want: "wrote more than"},
	{name: "sleep 1e9 &", run: in("sleep 1e9 &"), code: 0, want: "Killed because the command had ended: "},
	{name: "nohup sleep 1e9 &", run: in("nohup sleep 1e9 &"), code: 0, want: "Killed because the command had ended: "},
	{name: "setsid sleep 1e9 >log 2>&1 &", quick: true, run: in("setsid sleep 1e9 >log 2>&1 &"), code: 0, want: "Killed because the command had ended: "},
	{name: "sleep 1e9", run: in("sleep 1e9", "idle_s", 3), code: 124, want: "idle timeout"},
	{name: "kill -STOP $$", run: in("kill -STOP $$; echo on", "wait_s", 12), then: []step{signalled("continue")}, code: 0, want: "on"},
	{name: "200 MB in one line", run: in("head -c $MANY /dev/zero | tr '\\0' x"), code: 0, want: "no longer kept"},
	{name: "a here-document that never ends", run: in("cat <<END\nhello"), code: 0, want: "hello"},
	{name: "a here-document that never ends, tty", run: in("sh -i", "tty", true), then: []step{says("cat <<END\n"), says("hello\nEND\n"), says("exit 4\n")}, code: 4, want: ""},
	{name: "a read without a prompt", run: in("read x; echo got $x"), then: []step{says("it\n")}, code: 0, want: "got it"},
	{name: "grep without a file", quick: true, run: in("grep x"), then: []step{{"job_write", args{"end": true}}}, code: 1, want: ""},
	{name: ":(){ :|:& };:", by: "user", run: in("ulimit -u 150; :(){ :|:& };:; sleep 600", "timeout_s", 5), code: 124, want: "total timeout"},
	{name: "8 GiB of memory", needs: []string{"python3"}, run: in("python3 -c 'x = \"a\" * (8 << 30)'"), code: 1, want: "MemoryError"},
}

// Whatever a careless model runs, it soon gets an answer that it can act upon, and can go on. With -v the test prints
// the table of README.md if SHELL_ATTACK_FULL is set. Otherwise there are few attacks, and what floods writes a 25th: it
// takes the same ways, since what the server keeps is less in proportion. All attack one server, each in a
// directory of its own.
func TestAttack(t *testing.T) {
	t.Parallel()
	flags := []string{"-output", "10", "-spill", "2", "-env", "MANY=8000000"}
	if full() {
		flags = []string{"-output", "256", "-env", "MANY=200000000"}
	}
	if os.Getenv("SHELL_ATTACK_ONLINE") != "" {
		home, _ := os.UserHomeDir()
		flags = append(flags, "-env", "NPM_CONFIG_USERCONFIG="+filepath.Join(home, ".npmrc"))
	}
	server := start(t, flags...)
	rows := make([]string, len(attacks))
	t.Cleanup(func() { t.Log("\n| Command | What the model got | After |\n|---|---|---|\n" + strings.Join(rows, "")) })
	for i, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if !a.quick && !full() {
				t.Skip("set SHELL_ATTACK_FULL")
			}
			for _, program := range a.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(err)
				}
			}
			command := a.run["command"].(string)
			switch {
			case a.by == "root" && os.Getuid() != 0, a.by == "user" && os.Getuid() == 0:
				t.Skipf("is for %s", a.by)
			case a.by == "online" && os.Getenv("SHELL_ATTACK_ONLINE") == "":
				t.Skip("needs the network: set SHELL_ATTACK_ONLINE")
			case strings.Contains(command, "$PORT"):
				command = strings.ReplaceAll(command, "$PORT", port(t, a.needs))
			}
			s := &session{ClientSession: server.ClientSession, t: t, server: server.server}
			begun := time.Now()
			got, text := s.call("run", with(maps.Clone(a.run), "command", fmt.Sprintf("mkdir %d; cd %[1]d; %s", i, command)))
			took := []string{fmt.Sprintf("%.1f", time.Since(begun).Seconds())}
			gets := []string{summary(got)}
			for _, next := range a.then {
				if exit(got) >= 0 {
					t.Errorf("it has ended too early: %s", text)
					break
				}
				begun := time.Now()
				got, text = s.call(next.tool, with(args{"job": got.Job}, pairs(next.in)...))
				took = append(took, fmt.Sprintf("%.1f", time.Since(begun).Seconds()))
				gets = append(gets, fmt.Sprintf("`%s` %s: %s", strings.TrimPrefix(next.tool, "job_"), inputOf(next.in), summary(got)))
			}
			if a.code != -2 && exit(got) != a.code || !strings.Contains(text, a.want) {
				t.Errorf("exit code %d, want %d and %q\n%.2000s", exit(got), a.code, a.want, text)
			}
			if still, _ := s.call("run", in("echo still here")); still.Output != "still here\n" {
				t.Errorf("it cannot go on: %+v", still)
			}
			rows[i] = fmt.Sprintf("| `%s` | %s | %s s |\n", a.name, strings.Join(gets, "; "), strings.Join(took, ", "))
		})
	}
}

func pairs(a args) (all []any) {
	for k, v := range a {
		all = append(all, k, v)
	}
	return all
}

// inputOf is what a step passes to its tool.
func inputOf(a args) string {
	var all []string
	for _, key := range []string{"text", "end", "signal", "until"} {
		switch v := a[key].(type) {
		case string:
			all = append(all, fmt.Sprintf("`%s`", strings.Trim(fmt.Sprintf("%q", v), `"`)))
		case bool:
			all = append(all, "end")
		}
	}
	return strings.Join(all, " ")
}

// summary is an answer in a few words.
func summary(a answer) string {
	last := strings.TrimSpace(a.Output)
	if a.Waits != nil && a.Waits.Prompt != "" {
		last = a.Waits.Prompt
	}
	last = strings.TrimSpace(last[strings.LastIndexByte(last, '\n')+1:])
	if runes := []rune(last); len(runes) > 60 {
		last = string(runes[:60]) + "…"
	}
	last = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, last)
	if last != "" {
		last = ", `" + strings.NewReplacer("|", "¦", "`", "'").Replace(last) + "`"
	}
	switch {
	case a.Waits != nil && a.Waits.Secret:
		return "waits for a secret" + last
	case a.Waits != nil && a.Waits.Certain:
		return "waits for input" + last
	case a.Waits != nil:
		return "probably waits for input" + last
	case a.State == running:
		return "running" + last
	case a.Reason == "exited" && a.Leftovers != "":
		killed, _, _ := strings.Cut(a.Leftovers, " (process")
		return fmt.Sprintf("exit code %d, `%s …`%s", exit(a), killed, last)
	case a.Reason == "exited":
		return fmt.Sprintf("exit code %d%s", exit(a), last)
	}
	return fmt.Sprintf("%s, exit code %d%s", a.Reason, exit(a), last)
}

// port is one at which an ssh server listens, if the attack needs one, and at which nobody does otherwise.
func port(t *testing.T, needs []string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	l.Close()
	for _, program := range needs {
		if program != "sshd" {
			continue
		}
		key := filepath.Join(t.TempDir(), "key")
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		path, _ := exec.LookPath("sshd")
		path, _ = filepath.Abs(path)
		sshd := exec.Command(path, "-D", "-e", "-f", "/dev/null", "-h", key, "-o", "ListenAddress=127.0.0.1", "-p", port)
		var said strings.Builder
		sshd.Stderr = &said
		if err := sshd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- sshd.Wait() }()
		t.Cleanup(func() { _ = sshd.Process.Kill() })
		harness.Eventually(t, "sshd to listen", func() bool {
			select {
			case err := <-ended:
				t.Skip("sshd does not run here:", err, said.String())
			default:
			}
			c, err := net.Dial("tcp", at)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return port
}
