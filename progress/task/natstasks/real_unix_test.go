//go:build unix

package natstasks_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

func init() {
	modes["replica"] = func() {
		if err := replicaChild(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
	}
}

// replicaChild runs one task, says which, and then what has ended its tool.
func replicaChild(url string) error {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	store, err := natstasks.Open(context.Background(), js, natstasks.Options{})
	if err != nil {
		return err
	}
	tasks := &task.Tasks{Store: store}
	stopped := make(chan error, 1)
	record, err := begin(context.Background(), tasks, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return "too late", nil
	})
	if err != nil {
		return err
	}
	fmt.Println(record.ID)
	fmt.Println("lost", errors.Is(<-stopped, task.ErrLost))
	io.Copy(io.Discard, os.Stdin)
	return errors.Join(tasks.Close(), store.Close())
}

// SPEC 13.3, guarantee 5: the task of a process that was killed, or suspended for longer than its lease, is failed. One that
// wakes finds its tool aborted, with a cause that says so, and what that returns is dropped.
func TestRealProcess(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "suspended": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, server.Options{JetStream: true})
			w.openWith(natstasks.Options{Lease: time.Second})
			js := w.connect(nil)
			p := harness.Command("replica", w.url)
			p.Stderr = os.Stderr
			stdin, err := p.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Process.Kill(); p.Wait() })
			lines := bufio.NewReader(out)
			id, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			id = strings.TrimSpace(id)
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the task to be failed", func() bool { return w.status(js, id) == task.Failed })
			if sig == syscall.SIGKILL {
				return
			}
			if err := p.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if line, err := lines.ReadString('\n'); line != "lost true\n" {
				t.Errorf("%q, %v", line, err)
			}
			stdin.Close()
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
			if got := w.status(js, id); got != task.Failed {
				t.Errorf("after it woke: %v", got)
			}
		})
	}
}
