//go:build unix

package simulate_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// scriptVariable has the script that this program performs in place of its tests.
const scriptVariable = "SIMULATE_SCRIPT"

func TestMain(m *testing.M) {
	proctree.HelperMain()
	if text := os.Getenv(scriptVariable); text != "" {
		var s Script
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		p := performer{traps: make(map[syscall.Signal]Script), signals: make(chan os.Signal, 16)}
		p.perform(s)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// performing returns a command that performs a script on this system.
func performing(s Script) *exec.Cmd {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), scriptVariable+"="+string(text), "GORACE=atexit_sleep_ms=0") // or each ends a second late
	return cmd
}

// A performer does what a script says with the system's calls, so that what the machine pretends can be compared.
type performer struct {
	traps    map[syscall.Signal]Script
	signals  chan os.Signal
	children []*exec.Cmd
}

func (p *performer) perform(s Script) {
	for _, step := range s {
		p.step(step)
	}
}

func (p *performer) step(s Step) {
	switch s.Do {
	case Write:
		b := make([]byte, s.N)
		for i := range b {
			b[i] = 'x'
		}
		if _, err := map[int]*os.File{1: os.Stdout, 2: os.Stderr}[s.FD].Write(b); err != nil {
			return // of a pipe without a reader the runtime dies by SIGPIPE, as other programs do
		}
	case Read:
		_, _ = os.Stdin.Read(make([]byte, s.N))
	case Sleep, Work:
		p.pause(s.D)
	case Fork, Daemon:
		cmd := performing(s.Script)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if s.Do == Daemon {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		if s.Do == Fork {
			p.children = append(p.children, cmd)
		}
	case Trap:
		p.traps[s.Signal] = s.Script
		signal.Notify(p.signals, s.Signal)
	case Ignore:
		p.traps[s.Signal] = nil
		signal.Ignore(s.Signal)
	case Close:
		_ = syscall.Close(s.FD)
	case Stop:
		_ = syscall.Kill(os.Getpid(), cmp.Or(s.Signal, syscall.SIGSTOP))
	case Await:
		for _, c := range p.children {
			_ = c.Wait()
		}
	case Exit:
		os.Exit(s.N)
	case Die:
		p.die(s.Signal)
	}
}

func (p *performer) die(sig syscall.Signal) {
	signal.Reset(sig)
	_ = syscall.Kill(os.Getpid(), sig)
	select {}
}

func (p *performer) pause(d time.Duration) {
	over := time.After(d)
	for {
		select {
		case <-over:
			return
		case sig := <-p.signals:
			p.perform(p.traps[sig.(syscall.Signal)])
		}
	}
}
