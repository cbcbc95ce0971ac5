package host_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/host"
)

// stageEnv has the path of the socket at which a scenario directs its processes. A process connects to
// it, says its name, and takes commands. The end of the connection is its end, and the other way
// round.
const stageEnv = "HOST_TEST_STAGE"

// roles runs a process of a scenario: ROLE NAME [FLAG]... [-- COMMAND...].
//
// A host starts the command with a stdin of its own, a wrapper with the one that it has got. A server
// uses the package; with a command it is the host of another server. An idle process only holds
// what it has inherited.
func roles() {
	path := os.Getenv(stageEnv)
	if path == "" {
		return
	}
	r := &actor{role: os.Args[1], name: os.Args[2], exited: make(chan error, 1)}
	f := flag.NewFlagSet(r.role, flag.PanicOnError)
	f.StringVar(&r.stdin, "stdin", "pipe", "")
	f.StringVar(&r.leak, "leak", "", "")
	f.IntVar(&r.user, "user", 0, "")
	f.IntVar(&r.pid, "pid", 0, "")
	f.BoolVar(&r.wait, "wait", false, "")
	f.BoolVar(&r.careless, "wait-for-none", false, "")
	_ = f.Parse(os.Args[3:])
	r.command = f.Args()
	if r.role == "reaper" {
		must(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	}
	if r.role == "wrapper" && r.leak == "keep" { // it does not pass on what it has inherited
		unix.CloseOnExec(3)
	}
	conn, err := net.Dial("unix", path)
	must(err)
	r.conn = conn
	r.say(r.name)
	commands := bufio.NewScanner(conn)
	if r.wait {
		commands.Scan()
	}
	go r.play()
	for commands.Scan() {
		r.obey(commands.Text())
	}
	os.Exit(0) // the scenario is over
}

type actor struct {
	role, name, stdin, leak string
	user, pid               int
	wait, careless          bool
	command                 []string

	conn   net.Conn
	write  *os.File // the other end of the child's stdin
	child  *exec.Cmd
	exited chan error
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (r *actor) say(line string) {
	_, _ = io.WriteString(r.conn, strings.ReplaceAll(line, "\n", " ")+"\n")
}

// play does what the role does unasked.
func (r *actor) play() {
	if r.role == "server" {
		r.serve()
		return
	}
	if len(r.command) > 0 {
		r.start(r.role == "host")
		r.say("started")
	}
	switch r.role {
	case "wrapper":
		_ = r.child.Wait()
		os.Exit(r.child.ProcessState.ExitCode())
	case "reaper":
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
				os.Exit(0)
			}
		}
	case "host":
		if r.careless {
			return
		}
		_ = r.child.Wait()
		r.say("reaped")
	}
}

// serve is a server: it ends with its host, or at the end of stdin, and says which.
func (r *actor) serve() {
	begin := host.Context
	if r.pid != 0 {
		begin = func(parent context.Context) (context.Context, context.CancelFunc) {
			return host.ContextOf(parent, r.pid)
		}
	}
	ctx, stop := begin(context.Background())
	defer stop()
	if len(r.command) > 0 {
		r.start(true)
	}
	if h, err := host.Of(ctx); err != nil {
		r.say("nothing: " + err.Error())
	} else {
		r.say(fmt.Sprintf("watching %d %s", h.Pid, h.Name))
	}
	eof := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(eof)
	}()
	select {
	case <-eof:
		r.say("eof")
	case <-ctx.Done():
		r.say("ended: " + context.Cause(ctx).Error())
	}
	os.Exit(0)
}

// start runs the command, with a stdin of its own or with this process's.
func (r *actor) start(own bool) {
	r.child = exec.Command(r.command[0], r.command[1:]...)
	r.child.Stdin, r.child.Stderr = os.Stdin, os.Stderr
	var read *os.File
	if own {
		read, r.write = r.ends()
		r.child.Stdin = read
	}
	switch r.leak {
	case "child":
		r.child.ExtraFiles = []*os.File{r.write}
	case "sibling":
		r.hold("sibling", "sibling")
	}
	if r.user != 0 {
		r.child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.user), Gid: uint32(r.user)}}
	}
	must(r.child.Start())
	if read != nil {
		read.Close()
	}
}

// ends makes a stdin: the end to read, and the other one.
func (r *actor) ends() (read, write *os.File) {
	path, isFIFO := strings.CutPrefix(r.stdin, "fifo:")
	switch {
	case isFIFO:
		both, err := os.OpenFile(path, os.O_RDWR, 0)
		must(err)
		read, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		must(err)
		must(syscall.SetNonblock(int(read.Fd()), false))
		return read, both
	case r.stdin == "socket":
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(err)
		return os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
	}
	read, write, err := os.Pipe()
	must(err)
	return read, write
}

// hold starts an idle process of a program, which inherits the other end of the child's stdin.
func (r *actor) hold(program, name string) {
	exe, err := os.Executable()
	must(err)
	cmd := exec.Command(filepath.Join(filepath.Dir(exe), program), "idle", name)
	cmd.ExtraFiles = []*os.File{r.write}
	must(cmd.Start())
}

// obey does what the scenario asks for.
func (r *actor) obey(command string) {
	verb, name, _ := strings.Cut(command, " ")
	switch verb {
	case "exit":
		code, _ := strconv.Atoi(name)
		os.Exit(code)
	case "signal-child":
		must(r.child.Process.Signal(syscall.SIGTERM))
	case "copy": // as a host that goes into the background, or forks a worker
		r.hold("host", name)
	case "become": // another program in the same process
		exe, err := os.Executable()
		must(err)
		_, err = unix.FcntlInt(r.write.Fd(), unix.F_SETFD, 0)
		must(err)
		must(syscall.Exec(exe, []string{exe, "idle", name}, os.Environ()))
	default:
		panic(command)
	}
}
