package procgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// programsInC are small programs that wait in ways for which no usual program was found.
var programsInC = map[string]string{
	// The main thread has ended, and another one works.
	"leaderless": `#include <pthread.h>
#include <unistd.h>
static void *f(void *x) { for (;;) sleep(1); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }`,
	// A timer of POSIX that runs a function in a thread.
	"timerthread": `#include <signal.h>
#include <time.h>
#include <unistd.h>
static void f(union sigval v) { (void)v; }
int main(void) {
	struct sigevent e = {0}; e.sigev_notify = SIGEV_THREAD; e.sigev_notify_function = f;
	timer_t t; timer_create(CLOCK_MONOTONIC, &e, &t);
	struct itimerspec s = {{60, 0}, {60, 0}}; timer_settime(t, 0, &s, 0);
	char c; read(0, &c, 1); }`,
	// A timer of POSIX whose signal comes through a descriptor.
	"timersignalfd": `#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
int main(void) {
	sigset_t m; sigemptyset(&m); sigaddset(&m, SIGALRM); sigprocmask(SIG_BLOCK, &m, 0);
	int s = signalfd(-1, &m, 0), e = epoll_create1(0);
	timer_t t; timer_create(CLOCK_MONOTONIC, 0, &t);
	struct itimerspec i = {{60, 0}, {60, 0}}; timer_settime(t, 0, &i, 0);
	struct epoll_event v = {EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); epoll_ctl(e, EPOLL_CTL_ADD, s, &v);
	epoll_wait(e, &v, 1, -1); }`,
	// What io_uring does is announced by an eventfd.
	"uringeventfd": `#include <linux/io_uring.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
	struct io_uring_params p; memset(&p, 0, sizeof p);
	int r = syscall(SYS_io_uring_setup, 8, &p), f = eventfd(0, 0), e = epoll_create1(0);
	if (r < 0) return 77;
	syscall(SYS_io_uring_register, r, IORING_REGISTER_EVENTFD, &f, 1);
	struct epoll_event v = {EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); epoll_ctl(e, EPOLL_CTL_ADD, f, &v);
	epoll_wait(e, &v, 1, -1); }`,
	"mq": `#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <unistd.h>
static void *f(void *x) { struct mq_attr a = {0, 1, 8, 0}; mqd_t q = mq_open("/tooldeadline-test", O_CREAT|O_RDWR, 0600, &a); mq_unlink("/tooldeadline-test"); char b[8]; mq_receive(q, b, 8, 0); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); char c; read(0, &c, 1); }`,
	"sysv": `#include <pthread.h>
#include <sys/msg.h>
#include <unistd.h>
static void *f(void *x) { int q = msgget(IPC_PRIVATE, 0600); struct { long t; char c[1]; } m; struct msqid_ds d; if (!fork()) { sleep(60); _exit(0); } msgrcv(q, &m, 1, 0, 0); msgctl(q, IPC_RMID, &d); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); char c; read(0, &c, 1); }`,
}

// timersInGo are a program that reads its input while a timer of its runtime is set.
const timersInGo = `package main

import ("fmt"; "io"; "os"; "time")

func main() {
	switch os.Args[1] {
	case "after": time.AfterFunc(90*time.Second, func() {})
	case "hourly": time.AfterFunc(time.Hour, func() {})
	case "sleep": go time.Sleep(2*time.Minute)
	case "ticker": go func() { for range time.Tick(30*time.Second) { } }()
	}
	io.ReadAll(os.Stdin)
	fmt.Print(time.Now())
}
`

// attacks do not wait for input only. The rule was attacked with them.
var attacks = []struct{ name, script string }{
	{"inotify", `exec python3 -c 'import ctypes, select; l = ctypes.CDLL(None); f = l.inotify_init(); l.inotify_add_watch(f, b".", 0xfff); p = select.poll(); p.register(0, 1); p.register(f, 1); p.poll()'`},
	{"timerfd", `exec python3 -c 'import ctypes, select; l = ctypes.CDLL(None); f = l.timerfd_create(1, 0); l.timerfd_settime(f, 0, (ctypes.c_long * 4)(60, 0, 60, 0), None); p = select.epoll(); p.register(0, 1); p.register(f, 1); p.poll()'`},
	{"timerfd in an epoll in an epoll", `exec python3 -c 'import ctypes, select; l = ctypes.CDLL(None); f = l.timerfd_create(1, 0); l.timerfd_settime(f, 0, (ctypes.c_long * 4)(60, 0, 60, 0), None); p = select.epoll(); p.register(0, 1); q = select.epoll(); q.register(f, 1); p.register(q.fileno(), 1); p.poll()'`},
	{"pidfd", `sleep 60 & exec python3 -c 'import os, sys, select; p = select.poll(); p.register(0, 1); p.register(os.pidfd_open(int(sys.argv[1])), 1); p.poll()' $!`},
	{"netlink", `exec python3 -c 'import select, socket; s = socket.socket(16, 3, 0); s.bind((0, 1)); p = select.poll(); p.register(0, 1); p.register(s, 1); p.poll()'`},
	{"abstract datagrams", `exec python3 -c 'import select, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(""); p = select.poll(); p.register(0, 1); p.register(s, 1); p.poll()'`},
	{"a lock", `python3 -c 'import fcntl, time; f = open("l", "w"); fcntl.lockf(f, 2); time.sleep(60)' & sleep 1; (exec python3 -c 'import fcntl; f = open("l", "r+"); fcntl.lockf(f, 2)') & read x`},
	{"a lock of somebody else", `(exec 9>l; flock -o 9 sleep 60) & sleep 0.3; read x`},
	{"a fifo is opened", `mkfifo f; (: <f) & read x`},
	{"a fifo is read", `mkfifo f; exec 3<>f; cat <&3 & read x`},
	{"a traced child", `gdb -q -batch -ex 'python import time; time.sleep(60)' /bin/true </dev/null >/dev/null 2>&1 & read x`},
	{"a session of its own", `setsid sleep 60 & read x`},
	{"an orphan in a session of its own", `(setsid sleep 60 &) ; read x`},
	{"a background shell", `(while :; do sleep 0.5; done) & read x`},
	{"bursts in a thread", `exec python3 -c 'import threading, time, sys
def f():
    while True: sum(range(10000)); time.sleep(1)
threading.Thread(target=f, daemon=True).start(); sys.stdin.read()'`},
	{"a pool of processes", `exec python3 -c 'import multiprocessing as m, time, sys
if __name__ == "__main__":
    p = m.Pool(2); p.map_async(time.sleep, [60, 60]); sys.stdin.read()'`},
	{"an executor", `exec python3 -c 'import concurrent.futures as c, time, sys; c.ThreadPoolExecutor().submit(time.sleep, 60); sys.stdin.read()'`},
	{"asyncio", `exec python3 -c 'import asyncio, sys
async def f():
    r = asyncio.StreamReader(); await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(r), sys.stdin)
    await asyncio.gather(r.read(), asyncio.sleep(60))
asyncio.run(f())'`},
	{"an epoll entry of a descriptor that is another one now", `exec python3 -c 'import os, select, socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); e = select.epoll(); e.register(s, 1); d = os.dup(s.fileno()); os.dup2(0, s.fileno()); e.poll()'`},
	{"an epoll of the parent", `exec python3 -c 'import os, select, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); e = select.epoll(); e.register(s, 1)
if os.fork() == 0: os.dup2(0, s.fileno()); e.poll()
os.wait()'`},
	{"a shared semaphore", `exec python3 -c 'import multiprocessing as m, os, sys, time
s = m.Semaphore(0)
if os.fork() == 0: s.acquire(); os._exit(0)
sys.stdin.read()'`},
	{"node with a worker", `exec node -e 'new (require("worker_threads").Worker)("setInterval(() => {}, 60000)", {eval: true}); process.stdin.resume()'`},
	{"node with a socket", `exec node -e 'require("dgram").createSocket("udp4").bind(0); process.stdin.resume()'`},
	{"a watcher of a shell", `exec node -e 'require("child_process").spawn("sh", ["-c", "while :; do sleep 1; done"]); process.stdin.resume()'`},
	{"script", `script -qc 'sleep 60' /dev/null`},
	{"expect", `expect -c 'spawn -noecho sleep 60; interact'`},
	{"tmux", `tmux -L attack$$ -f /dev/null new-session -d 'sleep 60'; read x`},
	{"socat", `socat - TCP-LISTEN:0,bind=127.0.0.1`},
	{"the leader of a process has ended", `"$C/leaderless" & read x`},
	{"a timer that runs a function", `exec "$C/timerthread"`},
	{"a timer that is read", `exec "$C/timersignalfd"`},
	{"io_uring with an eventfd", `exec "$C/uringeventfd"`},
	{"a message queue", `exec "$C/mq"`},
	{"a message queue of System V", `exec "$C/sysv"`},
	{"a long timer in Go", `exec "$C/gotimers" after`},
	{"a ticker in Go", `exec "$C/gotimers" ticker`},
	{"an hourly timer in Go", `exec "$C/gotimers" hourly`},
	{"a sleeping goroutine in Go", `exec "$C/gotimers" sleep`},
	{"vfork", `exec python3 -c 'import subprocess; subprocess.run(["sleep", "60"])'`},
	{"make", `printf 'all:\n\t@sleep 60\n' >Makefile; make & read x`},
	{"bash waits for any", `exec bash -c 'sleep 60 & sleep 50 & wait -n'`},
	{"a coprocess", `exec bash -c 'coproc sleep 60; read x'`},
	{"process substitution", `exec bash -c 'cat <(sleep 60) -'`},
	{"docker", `exec docker run -i busybox cat`},
}

func attackDir(t *testing.T) string {
	t.Helper()
	needs(t, "cc")
	dir := t.TempDir()
	for name, text := range programsInC {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".c", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cc", "-w", "-o", file, file+".c", "-lpthread", "-lrt").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	file := filepath.Join(dir, "gotimers")
	if err := os.WriteFile(file+".go", []byte(timersInGo), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", file, file+".go")
	build.Dir = dir                                 // outside of every module and workspace
	build.Env = append(build.Environ(), "GOFLAGS=") // a race detector sleeps
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// SPEC 6.18: no false alarm. What leaves the process group is what matters with a group.
func TestInputUnderAttack(t *testing.T) {
	dir := attackDir(t)
	var side sideBySide
	defer side.wait()
	for _, tt := range attacks {
		for _, on := range []string{"descendants", "group", "terminal"} {
			if on == "group" && !strings.Contains(tt.name, "session") || on == "terminal" && !strings.Contains(tt.name, "epoll") {
				continue
			}
			side.run(t, on+", "+tt.name, func(t *testing.T) {
				needs(t, programOf(tt.script))
				var p *procgroup.Process
				home := t.TempDir()
				script := `export ATTACK=` + home + `; cd "$ATTACK"; C=` + dir + `; ` + tt.script
				t.Cleanup(func() {
					for _, pid := range marked("ATTACK=" + home) { // what has left the group lives on
						killPid(pid)
					}
				})
				if on == "terminal" {
					p = onTerminal(t, script)
				} else {
					p = startWaiting(t, script, procgroup.WithContainment(procgroup.Containment(on)))
				}
				for begun := time.Now(); time.Since(begun) < 2500*time.Millisecond; time.Sleep(50 * time.Millisecond) {
					if got := p.Input(); got.Pid != 0 {
						t.Fatalf("a false alarm: %+v", got)
					}
				}
			})
		}
	}
}
