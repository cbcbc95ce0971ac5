//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A program that starts and waits for its command itself lets the work of the command and its children count.
func ExampleObserve() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", "sh -c 'while kill -0 $PPID; do :; done' 2>/dev/null; :")
		if err := cmd.Start(); err != nil {
			return err
		}
		o, err := procgroup.Observe(ctx, cmd.Process, procgroup.Activity{CPU: true})
		if err != nil {
			return err
		}
		defer o.Stop()
		return cmd.Wait()
	}, timeout.Config{Idle: 500 * time.Millisecond, Total: time.Second})
	fmt.Println(err)
	// Output:
	// Tool exceeded wall-clock limit of 1s.
}

func ExampleObserver_Tree() {
	cmd := exec.Command("sleep", "60")
	_ = cmd.Start()
	o, err := procgroup.Observe(context.Background(), cmd.Process, procgroup.Activity{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer o.Stop()
	fmt.Println(len(o.Tree().Processes))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	fmt.Println(len(o.Tree().Processes))
	// Output:
	// 1
	// 0
}

func ExampleActivity_Check() {
	fmt.Println(procgroup.Activity{CPU: true, IO: true}.Check())
	fmt.Println(procgroup.Activity{CPU: true, CPURate: -1}.Check() != nil)
	// Output:
	// <nil>
	// true
}

// A stuck process is stopped although it is observed. (That a descendant's work counts is in ExampleObserve.)
func TestObserve(t *testing.T) {
	t.Parallel()
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, "sleep", "120")
		if err := cmd.Start(); err != nil {
			return err
		}
		o, err := procgroup.Observe(ctx, cmd.Process, procgroup.Activity{CPU: true})
		if err != nil {
			return err
		}
		defer o.Stop()
		return cmd.Wait()
	}, timeout.Config{Idle: 300 * time.Millisecond})
	if !errors.Is(err, timeout.ErrIdle) {
		t.Error(err)
	}
	cmd := exec.Command("sleep", "120")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var bad *timeout.ConfigError
	if _, err := procgroup.Observe(t.Context(), cmd.Process, procgroup.Activity{CPU: true, CPURate: math.Inf(1)}); !errors.As(err, &bad) {
		t.Error(err)
	}
	o, err := procgroup.Observe(t.Context(), cmd.Process, procgroup.Activity{})
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	o.Stop()
	o.Stop()
	if tree := o.Tree(); tree.Processes != nil {
		t.Errorf("after Stop\n%v", tree)
	}
	if _, err := procgroup.Observe(t.Context(), cmd.Process, procgroup.Activity{}); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("of what has been waited for: %v", err)
	}
}
