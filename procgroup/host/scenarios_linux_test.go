package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A scenario starts a server in some way, does something to the processes around it, and knows
// whether the server has to end. Only that it ends is an orphan's proof, so the end of stdin is held
// up wherever that is possible: a "sibling" has inherited the other end.
type scenario struct {
	name  string
	needs string   // "root", "namespaces" or a program; without it the scenario is skipped
	start []string // the command line
	hosts string   // the process that the server watches; "" is none, and "?" is not looked at
	act   func(*stage)
	want  string // the last line of the server, as a prefix; "lives", or "gone" without a last line
}

const (
	endsWithHost    = "ended: the host, "
	endsWithWrapper = "ended: sh "
	lives           = "lives"
)

// line joins the parts of a command line.
func line(parts ...[]string) []string { return slices.Concat(parts...) }

var (
	theServer = []string{"@server", "server", "server"}
	unbegun   = []string{"@server", "server", "server", "-wait"}
	shell     = []string{"sh", "-c", `"$@"; :`, "sh"}
	npx       = []string{"@server", "wrapper", "npx", "--"}
	launcher  = []string{"@server", "launcher", "outer", "--", "@server", "launcher", "inner", "--"}
	reaper    = []string{"@server", "reaper", "reaper", "--"}
	daemon    = []string{"sh", "-c", `setsid nohup "$@" >/dev/null 2>&1 &`, "sh"}
	namespace = []string{"unshare", "--pid", "--fork", "--mount-proc"}
)

// theHost is a host that starts what follows.
func theHost(flags ...string) []string {
	return line([]string{"@host", "host", "host"}, flags, []string{"--"})
}

const (
	sibling = "-leak=sibling"
	itself  = "-leak=child"
	socket  = "-stdin=socket"
)

func killHost(s *stage) { s.proc("host").kill() }

func scenarios() (all []scenario) {
	// The ways to start a server, by the kind of its stdin.
	for _, through := range []struct {
		name string
		by   []string
	}{{"directly", nil}, {"through sh", shell}, {"through npx and sh", line(npx, shell)}} {
		for _, stdin := range []string{"pipe", "socket"} {
			for _, leak := range []string{"", sibling} {
				flags, want := []string{"-stdin=" + stdin}, "" // without a leak, either end may be seen first
				name := fmt.Sprintf("the host is killed, %s, %s", through.name, stdin)
				if leak != "" {
					flags, want, name = append(flags, leak), endsWithHost, name+", leaked"
				}
				all = append(all, scenario{name: name, start: line(theHost(flags...), through.by, theServer), hosts: "host", act: killHost, want: want})
			}
		}
	}
	launchersEnd := func(s *stage) {
		s.proc("inner").exit()
		s.proc("outer").exit()
	}
	// reparented waits until the server is nobody's child of them: what they have open ends a little before they do.
	reparented := func(s *stage) {
		status := fmt.Sprintf("/proc/%d/status", s.proc("server").pid)
		old := fmt.Sprintf("\nPPid:\t%d\n", s.proc("inner").pid)
		for deadline := time.Now().Add(generous); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if b, err := os.ReadFile(status); err != nil || !strings.Contains(string(b), old) {
				return
			}
		}
		s.t.Error("the server is still a child of its launcher")
	}
	return append(all, []scenario{
		{name: "the wrapper holds the other end", start: line(theHost(itself), []string{"@server", "wrapper", "npx", "-leak=keep", "--"}, theServer),
			hosts: "host", act: killHost, want: endsWithHost},
		{name: "the server holds the other end itself, pipe", start: line(theHost(itself), theServer), hosts: "host", act: killHost, want: endsWithHost},
		{name: "the server holds the other end itself, socket", start: line(theHost(itself, socket), theServer), hosts: "host", act: killHost, want: endsWithHost},
		{name: "sh and the server hold the other end", start: line(theHost(itself), shell, theServer), hosts: "host", act: killHost, want: endsWithHost},

		{name: "the server is of the host's executable and holds the other end itself, and the host ends by itself", start: line(theHost(itself), []string{"@host", "server", "server"}),
			hosts: "host", act: func(s *stage) { s.proc("host").exit() }, want: endsWithHost},

		{name: "a launcher that forks twice, both end", start: line(theHost(sibling), launcher, theServer), hosts: "host", act: launchersEnd, want: lives},
		{name: "a launcher that forks twice, both end, and the host is killed", start: line(theHost(sibling), launcher, theServer), hosts: "host",
			act: func(s *stage) { launchersEnd(s); killHost(s) }, want: endsWithHost},
		{name: "a launcher that ends before the server begins", start: line(theHost(), launcher, unbegun),
			act: func(s *stage) {
				s.proc("server")
				launchersEnd(s)
				reparented(s)
				s.proc("server").tell("begin")
			}, want: lives},
		{name: "a launcher that ends before the server begins, and the host is killed", start: line(theHost(), launcher, unbegun),
			act: func(s *stage) {
				s.proc("server")
				launchersEnd(s)
				reparented(s)
				s.proc("server").tell("begin")
				s.proc("server").says("nothing: ")
				killHost(s)
			}, want: "eof"},

		{name: "the host goes into the background", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { goIntoBackground(s, "heir") }, want: lives},
		{name: "the host goes into the background and is killed there", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) {
				goIntoBackground(s, "heir")
				s.proc("server").lives()
				s.proc("heir").kill()
			}, want: endsWithHost},
		{name: "the host goes into the background and is killed there, socket", start: line(theHost(sibling, socket), theServer), hosts: "host",
			act: func(s *stage) {
				goIntoBackground(s, "heir")
				s.proc("server").lives()
				s.proc("heir").kill()
			}, want: endsWithHost},
		{name: "the host is killed, and a worker that it has forked lives", start: line(theHost(), theServer), hosts: "host",
			act: func(s *stage) {
				s.proc("host").tell("copy worker")
				s.proc("worker")
				killHost(s)
			}, want: endsWithHost},
		{name: "the host ends by itself", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").exit() }, want: endsWithHost},

		{name: "the host is stopped", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").signal(syscall.SIGSTOP) }, want: lives},
		{name: "the host is stopped and killed", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").signal(syscall.SIGSTOP); killHost(s) }, want: endsWithHost},

		{name: "the host is started by setsid nohup, and the shell ends", needs: "setsid", start: line(daemon, theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { _ = s.cmd.Wait() }, want: lives},
		{name: "the host is started by setsid nohup and killed", needs: "setsid", start: line(daemon, theHost(sibling), theServer), hosts: "host", act: killHost, want: endsWithHost},
		{name: "what started the host is killed", start: line(shell, theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { _ = s.cmd.Process.Kill() }, want: lives},

		{name: "the host is process 1 of a PID namespace and killed", needs: "namespaces", start: line(namespace, theHost(sibling), theServer), hosts: "?", act: killHost, want: "gone"},
		{name: "the host is below process 1 of a PID namespace and killed", needs: "namespaces", start: line(namespace, reaper, theHost(sibling), shell, theServer),
			hosts: "?", act: killHost, want: endsWithHost},
		{name: "the host is below process 1 of a PID namespace, and a sibling ends", needs: "namespaces", start: line(namespace, reaper, theHost(sibling), theServer),
			hosts: "?", act: func(s *stage) { s.proc("sibling").exit() }, want: lives},
		{name: "the host is in a PID namespace without its own /proc, and killed", needs: "namespaces", start: line(namespace[:3], reaper, theHost(sibling), theServer),
			hosts: "?", act: killHost, want: endsWithHost},
		{name: "the host is outside the PID namespace of the server", needs: "namespaces", start: line(theHost(sibling), namespace, theServer),
			act: func(s *stage) { s.proc("sibling").exit() }, want: lives},

		{name: "below a subreaper, the launcher ends", start: line(reaper, theHost(sibling), launcher, theServer), hosts: "host", act: launchersEnd, want: lives},
		{name: "below a subreaper, the launcher ends and the host is killed", start: line(reaper, theHost(sibling), launcher, theServer), hosts: "host",
			act: func(s *stage) { launchersEnd(s); killHost(s) }, want: endsWithHost},

		{name: "the host is another user's and lives", needs: "root", start: line(theHost(sibling, "-user=65534"), theServer), hosts: "host",
			act: func(s *stage) { s.proc("sibling").exit() }, want: lives},
		{name: "the host is another user's and killed", needs: "root", start: line(theHost(sibling, "-user=65534"), theServer), hosts: "host", act: killHost, want: endsWithHost},

		{name: "the host signals only the shell", start: line(theHost(sibling), shell, theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").tell("signal-child") }, want: endsWithWrapper},
		{name: "the host signals only npx, with sh below", start: line(theHost(sibling), npx, shell, theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").tell("signal-child") }, want: "ended: server "},
		{name: "the host signals only the shell, and does not wait for it", start: line(theHost(sibling, "-wait-for-none"), shell, theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").tell("signal-child") }, want: endsWithWrapper},
		{name: "the wrapper ends by itself", start: line(theHost(sibling), npx, theServer), hosts: "host",
			act: func(s *stage) { s.proc("npx").exit(); s.proc("host").says("reaped") }, want: lives},
		{name: "the wrapper ends by itself with a code", start: line(theHost(sibling), npx, theServer), hosts: "host",
			act: func(s *stage) { s.proc("npx").tell("exit 15"); s.proc("host").says("reaped") }, want: lives},

		{name: "the host replaces itself", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").tell("become successor"); s.proc("successor") }, want: lives},
		{name: "the host replaces itself and is killed", start: line(theHost(sibling), theServer), hosts: "host",
			act: func(s *stage) { s.proc("host").tell("become successor"); s.proc("successor").kill() }, want: endsWithHost},

		{name: "a pipeline, the shell is killed", start: []string{"sh", "-c", `"$1" idle producer | "$2" server server; :`, "sh", "@host", "@server"},
			act: func(s *stage) { _ = s.cmd.Process.Kill() }, want: lives},
		{name: "a pipeline, the first command is killed", start: []string{"sh", "-c", `"$1" idle producer | "$2" server server; :`, "sh", "@host", "@server"},
			act: func(s *stage) { s.proc("producer").kill() }, want: "eof"},
		{name: "a FIFO that another process holds", start: line(theHost("-stdin=fifo:fifo", sibling), theServer),
			act: func(s *stage) { killHost(s) }, want: lives},
		{name: "a FIFO that another process holds, and the host is another user's", needs: "root", start: line(theHost("-stdin=fifo:fifo", sibling, "-user=65534"), theServer),
			act: func(s *stage) { killHost(s) }, want: lives},
		{name: "a FIFO that no other process holds", start: line(theHost("-stdin=fifo:fifo"), theServer), act: killHost, want: "eof"},

		{name: "a server behind a server, the outer one is killed", start: line(theHost(), []string{"@host", "server", "outer", sibling, "--"}, theServer), hosts: "outer",
			act: func(s *stage) { s.proc("outer").kill() }, want: endsWithHost},
		{name: "a server behind a server, the host is killed", start: line(theHost(sibling), []string{"@host", "server", "outer", sibling, "--"}, theServer), hosts: "outer",
			act: killHost, want: endsWithHost},
	}...)
}

// goIntoBackground has the host start itself again with the other end of stdin, and end.
func goIntoBackground(s *stage, heir string) {
	s.proc("host").tell("copy " + heir)
	s.proc(heir)
	s.proc("host").exit()
}

// SPEC 16.1. No server outlives its host, and none ends while its host lives.
func TestScenarios(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			need(t, sc.needs)
			s := newStage(t)
			if err := syscall.Mkfifo(filepath.Join(s.tmp, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
			s.run(sc.start...)
			server := s.proc("server")
			if strings.Contains(strings.Join(sc.start, " "), sibling) {
				s.proc("sibling")
			}
			if !slices.Contains(sc.start, "-wait") {
				watches(server, sc.hosts)
			}
			sc.act(s)
			switch sc.want {
			case lives:
				server.lives()
			case "gone":
				server.ends()
				if len(server.lines) > 1 {
					t.Errorf("the server said %q", server.lines)
				}
			case "":
				server.ends()
			default:
				server.says(sc.want)
				server.ends()
			}
		})
	}
}

// watches checks which process the server takes for its host.
func watches(server *proc, name string) {
	server.s.t.Helper()
	switch name {
	case "?":
		server.says("watching ")
	case "":
		server.says("nothing: ")
	default:
		server.says(fmt.Sprintf("watching %d ", server.s.proc(name).pid))
	}
}

// need skips a test for lack of something.
func need(t *testing.T, what string) {
	t.Helper()
	switch what {
	case "":
	case "root":
		if os.Geteuid() != 0 {
			t.Skip("only root can start a process of another user")
		}
	case "namespaces":
		if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
			t.Skipf("no PID namespaces: %v: %s", err, out)
		}
	default:
		if _, err := exec.LookPath(what); err != nil {
			t.Skipf("no %s", what)
		}
	}
}
