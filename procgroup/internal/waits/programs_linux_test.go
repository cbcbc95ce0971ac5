package waits

// A found is the right finding for a program.
type found int

const (
	no found = iota
	probably
	certainly
	missed // it waits, and that is not seen: a known limit, which is a failure once it is seen
)

// A program is a script of a shell and what is right for it on a pipe and on a terminal.
type program struct {
	script         string
	pipe, terminal found
	prompt         string // on a pipe, of those that the rule was made for
}

// programs is the table of SPEC 6.18: programs as they are run by agents. docs/waiting.md has it too.
var programs = []program{
	// Nobody has tuned the rule on these.
	{`ed`, certainly, certainly, ""},
	{`ex -u NONE`, certainly, certainly, ""},
	{`TERM=xterm vi -u NONE`, probably, probably, ""},
	{`openssl enc -base64`, certainly, certainly, ""},
	{`openssl req -new -newkey ed25519 -nodes -keyout k`, certainly, certainly, ""},
	{`openssl passwd`, certainly, certainly, ""},
	{`ssh-keygen -t ed25519`, certainly, certainly, ""},
	{`su nobody -s /bin/sh -c 'read x'`, certainly, certainly, ""},
	{`jshell`, missed, missed, ""},
	{`echo 'class X { public static void main(String[] a) { new java.util.Scanner(System.in).next(); } }' >X.java; java X.java`, missed, missed, ""},
	{`jdb`, missed, missed, ""},
	{`npm init`, probably, probably, ""},
	{`echo '{"scripts": {"x": "read x"}}' >package.json; npm run x`, missed, missed, ""},
	{`printf 'package main\nimport "fmt"\nfunc main() { var s string; fmt.Scan(&s) }\n' >x.go; GOFLAGS=-mod=mod go run x.go`, certainly, certainly, ""},
	{`gofmt`, certainly, certainly, ""},
	{`rustc -`, certainly, certainly, ""},
	{`jq .`, certainly, certainly, ""},
	{`gcc -x c -E -`, certainly, certainly, ""},
	{`as -o x`, certainly, certainly, ""},
	{`printf 'all:\n\t@read x\n' >Makefile; make`, certainly, certainly, ""},
	{`make -f -`, certainly, certainly, ""},
	{`perl -de 1`, certainly, certainly, ""},
	{`zsh -f -i`, certainly, certainly, ""},
	{`dash -i`, certainly, certainly, ""},
	{`fish --no-config`, certainly, missed, ""},
	{`busybox sh`, certainly, certainly, ""},
	{`patch -p0`, certainly, certainly, ""},
	{`tar -xf -`, certainly, no, ""},
	{`xxd`, certainly, certainly, ""},
	{`dd of=x`, certainly, certainly, ""},
	{`find . -maxdepth 0 -ok ls {} \;`, certainly, certainly, ""},
	{`touch a; zip -q z.zip a; unzip z.zip`, certainly, certainly, ""},
	{`strace -o trace cat`, certainly, certainly, ""},
	{`script -qc cat /dev/null`, missed, missed, ""},
	{`expect -c 'set timeout -1; expect_user x'`, certainly, certainly, ""},
	{`socat - EXEC:cat`, certainly, certainly, ""},
	{`node -e 'process.stdin.setRawMode && process.stdin.setRawMode(true); process.stdin.resume(); process.stdout.write("? ")'`, certainly, certainly, ""},
	{`python3 -m code`, certainly, certainly, ""},
	{`python3 -m asyncio`, certainly, certainly, ""},
	{`docker login`, no, probably, ""},
	{`wget -q -i -`, certainly, certainly, ""},
	{`python3 -c 'import socket, subprocess
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
subprocess.run(["curl", "-s", "-T", "-", "http://127.0.0.1:%d" % s.getsockname()[1]])'`, certainly, certainly, ""},
	{`git init -q . && git -c user.name=a -c user.email=b -c core.editor='TERM=xterm vi' commit --allow-empty`, probably, probably, ""},
	{`git init -q . && git -c user.name=a -c user.email=b commit -qm x --allow-empty && git -c core.pager='TERM=xterm less -+F -+X' log`, no, certainly, ""},
	{`TERM=xterm man ls`, no, certainly, ""},
	{`gdb -q -ex 'break main' -ex run busybox`, certainly, certainly, ""},

	{`TERM=xterm top -d 60`, no, probably, ""},
	{`TERM=xterm watch -n 60 date`, no, no, ""},
	{`echo '{"scripts": {"x": "sleep 60"}}' >package.json; npm run x`, no, no, ""},
	{`node -e 'require("http").createServer().listen(0, "127.0.0.1"); require("readline").createInterface({input: process.stdin}).on("line", () => {}); process.stdout.write("press h for help ")'`, no, no, ""},
	{`node -e 'require("child_process").spawn("node", ["-e", "setInterval(() => {}, 60000)"], {stdio: "ignore"}); process.stdin.resume(); console.log("rs to restart")'`, no, no, ""},
	{`busybox nc -l -p 0`, no, no, ""},
	{`printf 'package main\nimport "time"\nfunc main() { time.Sleep(time.Minute) }\n' >x.go; GOFLAGS=-mod=mod go run x.go`, no, no, ""},
	{`echo 'class X { public static void main(String[] a) throws Exception { Thread.sleep(60000); } }' >X.java; java X.java`, no, no, ""},
	{`strace -o trace sleep 60`, no, no, ""},
	{`busybox tail -f /dev/null`, no, no, ""},

	// Those for which the rule was made, and that wait.
	{`cat`, certainly, certainly, ""},
	{`cat -`, certainly, certainly, ""},
	{`cat | cat`, certainly, certainly, ""},
	{`sed p`, certainly, certainly, ""},
	{`sort`, certainly, certainly, ""},
	{`wc -l`, certainly, certainly, ""},
	{`tr a b`, certainly, certainly, ""},
	{`tee out`, certainly, certainly, ""},
	{`head -3`, certainly, certainly, ""},
	{`grep -q foo`, certainly, certainly, ""},
	{`md5sum`, certainly, certainly, ""},
	{`base64`, certainly, certainly, ""},
	{`xargs echo`, certainly, certainly, ""},
	{`read x`, certainly, certainly, ""},
	{`printf 'Name: '; read x`, certainly, certainly, "Name:"},
	{`printf 'Continue? [y/N] '; read x; echo "$x"`, certainly, certainly, "Continue? [y/N]"},
	{`printf '\033[1mProceed?\033[0m '; read x`, certainly, certainly, "Proceed?"},
	{`printf 'Loading\rPassword: '; read x`, certainly, certainly, "Password:"},
	{`echo working; sleep 1; printf 'Sure? '; read x`, certainly, certainly, "Sure?"},
	{`sleep 1; read x`, certainly, certainly, ""},
	{`(read x)`, certainly, certainly, ""},
	{`sh -c 'sh -c "read x"; :'; :`, certainly, certainly, ""},
	{`while read x; do echo "$x"; done`, certainly, certainly, ""},
	{`printf 'a? '; timeout 60 cat`, certainly, no, "a?"}, // the terminal stops it: timeout is in the foreground, and cat is not
	{`printf 'wait: '; sleep 60 & read x`, probably, probably, "wait:"},
	{`sleep 60 & read x`, missed, missed, ""},
	{`printf '1) a\n2) b\n#? '; bash -c 'read -t 600 x'`, probably, probably, "#?"},
	{`bash -c 'select x in a b; do :; done'`, certainly, certainly, "#?"},
	{`bash -c 'read -t 600 x'`, missed, missed, ""},
	{`cp /etc/passwd a; cp -i /etc/passwd a`, certainly, certainly, "cp: overwrite 'a'?"},
	{`touch a; rm -i a`, certainly, certainly, "rm: remove regular empty file 'a'?"},
	{`touch a b; mv -i a b`, certainly, certainly, "mv: overwrite 'b'?"},
	{`echo a | tee b c >/dev/null; ln -i b c`, certainly, certainly, "ln: replace 'c'?"},
	{`git init -q . && echo a > a && git add a && git -c user.name=a -c user.email=b commit -qm x && echo b >> a && git add -p`, certainly, certainly, "(1/1) Stage this hunk [y,n,q,a,d,e,?]?"},
	{`git init -q . && touch a && git clean -i`, certainly, certainly, "What now>"},
	{`git hash-object --stdin`, certainly, certainly, ""},
	{`python3 -c 'input("Name: ")'`, certainly, certainly, "Name:"},
	{`python3 -c 'import sys; sys.stdin.readline()'`, certainly, certainly, ""},
	{`python3 -c 'import sys, select; select.select([sys.stdin], [], [])'`, certainly, certainly, ""},
	{`python3 -c 'import sys, select; sys.stdout.write("y? "); sys.stdout.flush(); select.select([sys.stdin], [], [], 600)'`, probably, probably, "y?"},
	{`python3 -c 'import selectors, sys; s = selectors.DefaultSelector(); s.register(0, 1); s.select()'`, certainly, certainly, ""},
	{`python3 -c 'import threading, sys; threading.Thread(target=sys.stdin.read).start()'`, certainly, certainly, ""},
	{`python3 -i -q`, certainly, certainly, ">>>"},
	{`echo 'x = 1' >a.py; python3 -m pdb a.py`, certainly, certainly, "(Pdb)"},
	{`python3 -c 'import subprocess; subprocess.run(["cat"])'`, certainly, certainly, ""},
	{`perl -e '$| = 1; print "x? "; <STDIN>'`, certainly, certainly, "x?"},
	{`perl -e '<STDIN>'`, certainly, certainly, ""},
	{`node -e 'process.stdin.on("data", () => {})'`, certainly, certainly, ""},
	{`node -e 'require("readline").createInterface({input: process.stdin, output: process.stdout}).question("Name? ", () => {})'`, certainly, certainly, "Name?"},
	{`node -e 'require("fs").readFileSync(0)'`, certainly, certainly, ""},
	{`node -i`, probably, probably, ">"},
	{`awk '{print}'`, certainly, certainly, ""},
	{`bc -q`, certainly, certainly, ""},
	{`sqlite3 x.db`, certainly, certainly, ""},
	{`gdb -q`, certainly, certainly, "(gdb)"},
	{`tclsh`, certainly, certainly, ""},
	{`gpg --batch --decrypt`, certainly, certainly, ""},

	{`perl -e 'alarm 60; <STDIN>'`, certainly, certainly, ""}, // an alarm is a signal

	// Those that do not.
	{`python3 -c 'import threading, time, sys; threading.Thread(target=time.sleep, args=(60,)).start(); sys.stdin.readline()'`, no, no, ""},
	{`python3 -c 'import threading, sys; threading.Timer(60, print).start(); sys.stdin.readline()'`, no, no, ""},
	{`python3 -c 'import select, socket; a, b = socket.socketpair(); s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); c = socket.create_connection(s.getsockname()); e = select.epoll(); e.register(0, select.EPOLLIN); e.register(c, select.EPOLLRDHUP); e.poll()'`, no, no, ""},
	{`python3 -c 'import select; f = open("/proc/self/mountinfo"); e = select.epoll(); e.register(0, select.EPOLLIN); e.register(f, select.EPOLLPRI); e.poll()'`, no, no, ""},
	{`python3 -c 'import select, os; f = open("/proc/self/mountinfo"); p = select.poll(); p.register(0, 1); p.register(f, 2); p.poll()'`, no, no, ""},
	{`python3 -c 'import select, socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); select.select([0], [], [s])'`, no, no, ""},
	{`sleep 60`, no, no, ""},
	{`sleep 60 & wait`, no, no, ""},
	{`printf 'Working...'; sleep 60`, no, no, ""},
	{`printf 'Working... '; sleep 60 & wait`, no, no, ""},
	{`sleep 60 </dev/null | cat`, no, no, ""},
	{`tail -f /dev/null`, no, no, ""},
	{`touch a; tail -f a`, no, no, ""},
	{`printf 'a? '; tail -f /dev/null | cat`, no, no, ""},
	{`while :; do sleep 0.2; done`, no, no, ""},
	{`while :; do :; done`, no, no, ""},
	{`while :; do echo x; sleep 0.1; done`, no, no, ""},
	{`mkfifo f; cat f`, no, no, ""},
	{`mkfifo f; printf 'a? '; cat <f`, no, no, ""},
	{`kill -STOP $$`, no, no, ""},
	{`python3 -c 'import time; time.sleep(60)'`, no, no, ""},
	{`python3 -c 'import threading; threading.Event().wait()'`, no, no, ""},
	{`python3 -c 'import threading; threading.Event().wait(60)'`, no, no, ""},
	{`python3 -c 'import asyncio; asyncio.run(asyncio.sleep(60))'`, no, no, ""},
	{`python3 -m http.server 0`, no, no, ""},
	{`python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); s.accept()'`, no, no, ""},
	{`python3 -c 'import socket, select, sys; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); select.select([s, sys.stdin], [], [])'`, no, no, ""},
	{`python3 -c 'import socket, threading, sys; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); threading.Thread(target=s.accept).start(); sys.stdin.read()'`, no, no, ""},
	{`python3 -c 'import multiprocessing as m; p = m.Process(target=__import__("time").sleep, args=(60,)); p.start(); p.join()'`, no, no, ""},
	{`python3 -c 'import fcntl, os; f = open("l", "w"); fcntl.flock(f, 2); os.fork() or fcntl.flock(open("l"), 2); __import__("time").sleep(60)'`, no, no, ""},
	{`node -e 'setTimeout(() => {}, 60000)'`, no, no, ""},
	{`node -e 'setInterval(() => {}, 100)'`, no, no, ""},
	{`node -e 'require("net").createServer().listen(0, "127.0.0.1"); process.stdin.on("data", () => {})'`, no, no, ""},
	{`node -e 'require("fs").watch("."); process.stdin.resume()'`, no, no, ""},
	{`node -e 'require("child_process").spawn("sleep", ["60"])'`, no, no, ""},
	{`perl -e 'sleep 60'`, no, no, ""},
	{`perl -e 'use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); $s->accept'`, no, no, ""},
	{`vim -es -u NONE -c 'sleep 60'`, no, no, ""},
	{`sqlite3 x.db 'with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c limit 1'`, no, no, ""},
}

// An attack is something that does not wait for input only. The rule was attacked with them.
type attack struct{ name, script string }

var attacks = []attack{
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
