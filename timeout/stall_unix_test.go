//go:build unix

package timeout_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const stallChildEnv = "TOOLDEADLINE_STALL_CHILD"

// TestStallChild is no test, but the process that TestRealStall stops: it runs one tool, or many,
// under an idle limit of 3 s and says how that ended.
func TestStallChild(t *testing.T) {
	mode := os.Getenv(stallChildEnv)
	if mode == "" {
		return // it has not been started as that
	}
	go func() { time.Sleep(time.Minute); os.Exit(3) }()
	if mode == "many" {
		runMany()
		os.Exit(0)
	}
	started := make(chan struct{})
	go func() {
		<-started
		fmt.Println("running")
	}()
	stalls := 0
	hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { stalls = s.Stalls }}
	in := bufio.NewReader(os.Stdin)
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		for range 10 {
			time.Sleep(50 * time.Millisecond)
			heartbeat.Beat(ctx)
		}
		close(started)
		switch mode {
		case "beats":
			go func() { in.ReadString('\n'); os.Stdin.Close() }()
			for end := time.Now().Add(12 * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
				time.Sleep(50 * time.Millisecond)
				heartbeat.Beat(ctx)
			}
		case "returns":
			in.ReadString('\n') // which comes while nobody runs
		case "stuck":
			<-ctx.Done()
		}
		return nil
	}, timeout.Config{Idle: 3 * time.Second, Total: time.Hour}, timeout.WithHooks(hooks))
	switch {
	case err == nil:
		fmt.Printf("lived, stalls %d\n", stalls)
	case errors.Is(err, timeout.ErrIdle):
		fmt.Printf("idle, stalls %d\n", stalls)
	default:
		fmt.Println(err)
	}
	os.Exit(0)
}

// runMany runs a thousand tools that beat for 14 s, and says how they ended: with the first error,
// or, where all have lived, with the least of their stalls.
func runMany() {
	const n = 1000
	var started, ended sync.WaitGroup
	started.Add(n)
	go func() {
		started.Wait()
		fmt.Println("running")
	}()
	stalls, errs := make([]int, n), make([]error, n)
	for i := range n {
		ended.Go(func() {
			hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { stalls[i] = s.Stalls }}
			errs[i] = timeout.Run(context.Background(), func(ctx context.Context) error {
				started.Done()
				for end := time.Now().Add(14 * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
					time.Sleep(100 * time.Millisecond)
					heartbeat.Beat(ctx)
				}
				return nil
			}, timeout.Config{Idle: 3 * time.Second, Total: time.Hour}, timeout.WithHooks(hooks))
		})
	}
	ended.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Println(strings.SplitN(err.Error(), "\n", 2)[0])
		return
	}
	fmt.Printf("lived, stalls %d\n", slices.Min(stalls))
}

// SPEC 3.16, with real signals: a process that is stopped for 5 s under an idle limit of
// 3 s, also where a thousand tools share two processors.
func TestRealStall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode, want string
		stalls     int // at least: a machine that is busy enough stalls the process too
	}{
		{"beats", "lived", 1},
		{"returns", "lived", 0}, // 1, unless the line was there before the limit was due
		{"stuck", "idle", 1},
		{"many", "lived", 1}, // each of them
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestStallChild$")
			cmd.Env = append(os.Environ(), stallChildEnv+"="+tc.mode, "GORACE=atexit_sleep_ms=0")
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
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			lines := bufio.NewScanner(stdout)
			if !lines.Scan() || lines.Text() != "running" {
				t.Fatalf("the child says %q, %v", lines.Text(), lines.Err())
			}
			signal(t, cmd.Process, syscall.SIGSTOP)
			time.Sleep(2500 * time.Millisecond)
			if tc.mode == "returns" {
				fmt.Fprintln(stdin)
			}
			time.Sleep(2500 * time.Millisecond)
			resumed := time.Now() // before it can run
			signal(t, cmd.Process, syscall.SIGCONT)
			if !lines.Scan() {
				t.Fatalf("the child says nothing: %v", lines.Err())
			}
			outcome, count, _ := strings.Cut(lines.Text(), ", stalls ")
			if n, err := strconv.Atoi(count); err != nil || n < tc.stalls || outcome != tc.want {
				t.Fatalf("the child says %q, want %q and at least %d stalls", lines.Text(), tc.want, tc.stalls)
			}
			if took := time.Since(resumed); tc.mode == "stuck" && (took < 2900*time.Millisecond || took > 20*time.Second) {
				t.Errorf("found %v after the process ran again, want its idle limit of 3s", took)
			}
		})
	}
}

func signal(t *testing.T, p *os.Process, s os.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}
