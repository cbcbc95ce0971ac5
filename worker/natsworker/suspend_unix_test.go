//go:build unix

package natsworker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

func init() { children["suspend"] = suspendWorker }

// suspendWorker is a process that says what became of its one message.
func suspendWorker() error {
	nc, err := nats.Connect(os.Getenv("SUSPEND_URL"))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.Consumer(context.Background(), streamName, consumerName)
	if err != nil {
		return err
	}
	var opt natsworker.Option
	if os.Getenv("SUSPEND_WAY") == "requested" {
		opt = natsworker.WithConn(nc)
	}
	m, err := c.Next()
	if err != nil {
		return err
	}
	natsworker.Handler(c, func(ctx context.Context, _ jetstream.Msg) error {
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("lost", errors.Is(context.Cause(ctx), natsworker.ErrLeaseLost))
		return errBroken
	}, noLimits, opt)(m)
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("ended")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// Guarantee 2: a process that was suspended for longer than AckWait finds its message lost,
// and says nothing about it.
func TestSuspendedProcess(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"published", "requested"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 12 * time.Second })
			heard := b.advisories()
			b.publish(1)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), modeEnv+"=suspend", "SUSPEND_WAY="+way, "SUSPEND_URL="+b.server.ClientURL())
			cmd.Stderr = os.Stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cmd.Process.Kill(); cmd.Wait() }()
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); line != "begun\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			other, _ := b.consumer(b.server.ClientURL())
			m, err := other.Next(jetstream.FetchMaxWait(2 * slack))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"lost true\n", "ended\n"} {
				if line, err := lines.ReadString('\n'); line != want {
					t.Errorf("%q, %v, want %q", line, err, want)
				}
			}
			if third, err := other.Next(jetstream.FetchMaxWait(100 * time.Millisecond)); err == nil {
				t.Errorf("delivery %d while the second is out", delivery(third))
			}
			if err := m.DoubleAck(t.Context()); err != nil {
				t.Error(err)
			}
			if got := heard("MSG_NAKED"); len(got) != 0 {
				t.Errorf("said after it was lost: %v", got)
			}
			stdin.Close()
			if rest, err := io.ReadAll(lines); err != nil || strings.TrimSpace(string(rest)) != "" {
				t.Errorf("%q, %v", rest, err)
			}
		})
	}
}
