package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	supervisor "github.com/tooldeadline/tooldeadline/heartbeat/notify"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func init() { modes["notify"], modes["relay"] = notify, relay }

// relay is a program of this library.
func relay([]string) int {
	left, _ := timeout.Remaining(context.Background())
	fmt.Println("left", left.Round(time.Hour))
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		defer supervisor.Relay(ctx)()
		heartbeat.BeatWith(ctx, "half")
		limits := timeout.FromContext(ctx).Snapshot().Limits
		fmt.Println("total", limits.Total.Round(time.Hour))
		return nil
	}, timeout.Config{})
	return timeout.ExitCode(err)
}

// SPEC 18.1, 18.3: both ways, between two programs of this library.
func TestNotifyBothWays(t *testing.T) {
	r, err := procgroup.Run(t.Context(), command("relay"), procgroup.Notify{Socket: true}, procgroup.Limits{Total: 5 * time.Hour, Idle: time.Minute})
	if want := "left 5h0m0s\ntotal 5h0m0s\n"; err != nil || r.Notices.Status != "half" || r.Stdout.String() != want {
		t.Errorf("%v, %+v\n%s", err, r.Notices, r.Combined)
	}
}

// notify prints the variables of the protocol, and sends each argument as a datagram: those after "as" as another user.
func notify(a []string) int {
	if a[0] == "as" {
		if err := syscall.Setuid(65534); err != nil {
			fmt.Println(err)
		}
		a = a[1:]
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "TOOL_DEADLINE"} {
		if value, ok := os.LookupEnv(name); ok {
			fmt.Println(name + "=" + value)
		}
	}
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	for _, text := range a {
		if err == nil {
			_, err = conn.Write([]byte(text))
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// variables parses what notify prints.
func variables(r *procgroup.Result) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(r.Stdout.String()) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[name] = value
	}
	return all
}

// SPEC 18.1, 18.2: a command is told its limits and nothing that was inherited, what it says arrives, and nothing is left of
// the socket.
func TestNotifyOnLinux(t *testing.T) {
	inherited := []string{"NOTIFY_SOCKET=/dev/null", "WATCHDOG_PID=1", "WATCHDOG_USEC=7", "TOOL_DEADLINE=2001-01-01T00:00:00Z"}
	start := func(t *testing.T, ctx context.Context, opts ...procgroup.Option) (*procgroup.Result, map[string]string) {
		cmd := command("notify", "READY=1", "STATUS=half\nWATCHDOG=1", strings.Repeat("x", 5000), "STOPPING=1")
		cmd.Env = append(cmd.Env, inherited...)
		r, err := procgroup.Run(ctx, cmd, append(opts, procgroup.Notify{Socket: true})...)
		if err != nil {
			t.Fatal(err, r.Combined.String())
		}
		if want := (procgroup.Notices{Ready: true, Stopping: true, Status: "half", Dropped: 1}); r.Notices != want {
			t.Errorf("the notices are %+v, want %+v", r.Notices, want)
		}
		said := variables(r)
		if _, ok := said["WATCHDOG_PID"]; ok {
			t.Errorf("it has inherited WATCHDOG_PID")
		}
		return r, said
	}
	t.Run("limits", func(t *testing.T) {
		before := time.Now()
		_, said := start(t, t.Context(), procgroup.Limits{Total: time.Hour, Idle: 30 * time.Second})
		if said["WATCHDOG_USEC"] != "30000000" {
			t.Errorf("%v", said)
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z", said["TOOL_DEADLINE"])
		if after := time.Now(); err != nil || at.Before(before.Add(time.Hour-time.Millisecond)) || at.After(after.Add(time.Hour)) {
			t.Errorf("the deadline is %v, %v, an hour from %v", at, err, before)
		}
		if _, err := os.Stat(filepath.Dir(said["NOTIFY_SOCKET"])); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory of %s is there: %v", said["NOTIFY_SOCKET"], err)
		}
	})
	t.Run("those of enclosing executions", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		at, _ := ctx.Deadline()
		_ = timeout.Run(ctx, func(ctx context.Context) error {
			_, said := start(t, ctx, procgroup.Limits{Total: time.Hour, Idle: time.Hour})
			if got, err := time.Parse(time.RFC3339, said["TOOL_DEADLINE"]); err != nil || at.Sub(got).Abs() > 2*time.Millisecond || said["WATCHDOG_USEC"] != "20000000" {
				t.Errorf("%v, want %v", said, at)
			}
			return nil
		}, timeout.Config{Idle: 20 * time.Second})
	})
	t.Run("none", func(t *testing.T) {
		_, said := start(t, context.Background())
		if _, ok := said["WATCHDOG_USEC"]; ok || said["TOOL_DEADLINE"] != "" {
			t.Errorf("%v", said)
		}
	})
	t.Run("a path that is too long", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), strings.Repeat("x", 100)))
		if err := os.Mkdir(os.Getenv("TMPDIR"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, said := start(t, t.Context()); !strings.HasPrefix(said["NOTIFY_SOCKET"], "@") {
			t.Errorf("%v", said)
		}
		if list, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(list) > 0 {
			t.Errorf("left: %v, %v", list, err)
		}
		if os.Getuid() != 0 {
			t.Skip("only root can be another user")
		}
		r, err := procgroup.Run(t.Context(), command("notify", "as", "READY=1\nSTATUS=of another user"), procgroup.Notify{Socket: true})
		if err != nil || r.Notices != (procgroup.Notices{}) {
			t.Errorf("%v, %+v\n%s", err, r.Notices, r.Stdout)
		}
	})
	t.Run("systemd-notify", func(t *testing.T) { // which waits until its barrier has been closed
		if _, err := exec.LookPath("systemd-notify"); err != nil {
			t.Skip("not installed")
		}
		for _, uid := range []int{os.Getuid(), 65534} {
			if uid != os.Getuid() && os.Getuid() != 0 {
				continue
			}
			cmd := exec.Command("systemd-notify", "--ready", "--status=up")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid()), NoSetGroups: true}}
			r, err := procgroup.Run(t.Context(), cmd, procgroup.Notify{Socket: true}, procgroup.Limits{Total: time.Minute})
			if want := (procgroup.Notices{Ready: true, Status: "up"}); err != nil || r.Notices != want || r.Elapsed > 4*time.Second {
				t.Errorf("as user %d: %v, %+v after %v\n%s", uid, err, r.Notices, r.Elapsed, r.Combined)
			}
		}
	})
	t.Run("a flood", func(t *testing.T) { // of which 100 in a second count
		r, err := procgroup.Run(t.Context(), command("notify", slices.Repeat([]string{"WATCHDOG=1"}, 2000)...), procgroup.Notify{Socket: true})
		if err != nil || r.Notices.Dropped < 1000 || r.Notices.Dropped > 1900 {
			t.Errorf("%v, %+v after %v", err, r.Notices, r.Elapsed)
		}
	})
	t.Run("no command", func(t *testing.T) { // the socket goes with the start
		t.Setenv("TMPDIR", t.TempDir())
		if _, err := procgroup.Start(t.Context(), exec.Command("/no/such/program"), procgroup.Notify{Socket: true}); err == nil {
			t.Error("started")
		}
		if list, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(list) > 0 {
			t.Errorf("left: %v, %v", list, err)
		}
	})
}

// How much longer a start takes with a socket: the ratio of the medians of a pair.
func BenchmarkNotifyStart(b *testing.B) {
	var took [2][]float64
	for b.Loop() {
		for i, o := range []procgroup.Notify{{}, {Socket: true}} {
			begun := time.Now()
			if _, err := procgroup.Run(b.Context(), exec.Command("true"), o); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(begun)))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	n := len(took[0]) / 2
	b.ReportMetric(took[1][n]/took[0][n], "ratio")
	b.ReportMetric(took[0][n]/1e3, "µs/without")
}

// awaitRead waits until l has read all messages that were sent before, as sd_notify_barrier(3) does.
func awaitRead(t *testing.T, l *procgroup.Listener) {
	t.Helper()
	var path string
	for _, v := range l.Environ(nil, 0, time.Time{}) {
		if value, ok := strings.CutPrefix(v, "NOTIFY_SOCKET="); ok {
			path = value
		}
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = unix.Sendmsg(socket, []byte("BARRIER=1"), unix.UnixRights(int(w.Fd())), &unix.SockaddrUnix{Name: path}, 0)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal("the barrier is still open:", err)
	}
}

// SPEC 18.2: what is said to a Listener counts for all executions that attend, and for none before and after.
func TestListener(t *testing.T) {
	l, err := procgroup.Listen()
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		t.Helper()
		cmd := command("notify", text)
		cmd.Env = l.Environ(cmd.Env, 0, time.Time{})
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	l.Attend(t.Context())
	say("STATUS=nobody\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=1000000")
	awaitRead(t, l) // a message that is read later is one for those who attend by then
	var all [2]*heartbeat.Monitor
	_ = timeout.Run(t.Context(), func(outer context.Context) error {
		return timeout.Run(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
			for i, ctx := range []context.Context{outer, ctx} {
				all[i] = heartbeat.FromContext(ctx)
				l.Attend(ctx)
				l.Attend(ctx) // once more counts once
			}
			say("STATUS=both\nWATCHDOG=1")
			for _, m := range all {
				harness.Eventually(t, "a heartbeat", func() bool { return m.Count() == 1 && m.Detail() == "both" })
			}
			return nil
		}, timeout.Config{})
	}, timeout.Config{})
	say("STATUS=last\nWATCHDOG=1")
	if said := l.Close(); said != (procgroup.Notices{Status: "last"}) || all[0].Count() != 1 || all[0].Detail() != "both" {
		t.Errorf("%+v, %d heartbeats", said, all[0].Count())
	}
}
