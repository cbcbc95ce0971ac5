package natsworker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

func init() { children["exit"] = exitWorker }

// exitWorker is a process that hangs, and ends as soon as Run has returned.
func exitWorker() error {
	nc, err := nats.Connect(os.Getenv("EXIT_URL"))
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := js.Consumer(ctx, streamName, consumerName)
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var opts []natsworker.Option
	if os.Getenv("EXIT_WAY") == "requested" {
		opts = append(opts, natsworker.WithConn(nc))
	}
	err = natsworker.Run(ctx, c, 1, func(ctx context.Context, _ jetstream.Msg) error {
		fmt.Println("begun")
		<-ctx.Done()
		return nil
	}, append(opts, noLimits)...)
	if err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// Guarantee 7: what Run has given back is with the server when it returns, even if that is
// the last thing that the process does.
func TestExitRightAfterRun(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"published", "requested"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 5 * time.Minute })
			b.publish(1)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), modeEnv+"=exit", "EXIT_WAY="+way, "EXIT_URL="+b.server.ClientURL())
			cmd.Stderr = os.Stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "begun\n" {
				t.Fatalf("%q, %v", line, err)
			}
			stdin.Close()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			c, _ := b.consumer(b.server.ClientURL())
			if _, err := c.Next(jetstream.FetchMaxWait(slack)); err != nil {
				t.Error("not given back: ", err)
			}
		})
	}
}
