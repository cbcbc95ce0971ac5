//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func Example() {
	res, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "echo working; sleep 60"),
		procgroup.WithOptions(timeout.WithName("TLC")),
		procgroup.Limits{Total: 30 * time.Minute, Idle: 2 * time.Second})
	fmt.Println(res.Message)
	fmt.Printf("exit code %d, output so far %q\n", res.ExitCode, res.Stdout)
	fmt.Println(errors.Is(err, timeout.ErrIdle))
	// Output:
	// TLC process timed out after 2000ms without output.
	// exit code 124, output so far "working\n"
	// true
}

// A tool's handler runs under an execution. The command inherits its limits.
func ExampleRun() {
	handler := func(ctx context.Context) error {
		res, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo compiling; exit 2"))
		fmt.Printf("%v, %q\n", res.Reason, res.Combined)
		return err
	}
	err := timeout.Run(context.Background(), handler, timeout.FastTools())
	fmt.Println(timeout.ExitCode(err), err)
	// Output:
	// exited, "compiling\n"
	// 2 exit status 2
}

func ExampleStart() {
	cmd := exec.Command("sort")
	p, err := procgroup.Start(context.Background(), cmd)
	fmt.Println(cmd.Process.Pid > 0, err)
	res, err := p.Wait()
	fmt.Println(res.ExitCode, err)

	_, err = procgroup.Start(context.Background(), exec.Command("no-such-command"))
	fmt.Println(timeout.ExitCode(err), err)
	// Output:
	// true <nil>
	// 0 <nil>
	// 127 exec: "no-such-command": executable file not found in $PATH
}

func ExampleProcess_Wait() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := procgroup.Start(ctx, exec.Command("sleep", "60"))
	if err != nil {
		fmt.Println(err)
		return
	}
	cancel()
	res, err := p.Wait()
	fmt.Println(res.ExitCode, res.Message, res.State)
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// 130 sleep process was aborted. signal: killed
	// true
}

// The command is asked to go on to its next step, and then to end.
func ExampleProcess_Signal() {
	script := exec.Command("sh", "-c", "trap 'echo next' USR1; trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done")
	lines := make(chan string, 2)
	p, err := procgroup.Start(context.Background(), script,
		procgroup.Capture{Each: procgroup.Lines(func(line string, stderr bool) {
			if !stderr { // there the shell reports how its sleep ended
				lines <- line
			}
		})})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-lines)
	fmt.Println(p.Signal(syscall.SIGUSR1), <-lines)
	fmt.Println(p.Signal(syscall.SIGTERM))
	res, err := p.Wait()
	fmt.Println(res.Reason, err)
	fmt.Println(p.Signal(syscall.SIGTERM))
	// Output:
	// ready
	// <nil> next
	// <nil>
	// exited <nil>
	// os: process already finished
}

// The text says all that the model has to know of a command that a tool has run.
func ExampleResult_Text() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "echo compiling; echo 1 error; exit 2"),
		procgroup.Capture{Tail: len("1 error\n")})
	fmt.Print(res.Text())
	res, _ = procgroup.Run(context.Background(), exec.Command("sleep", "60"),
		procgroup.Limits{Idle: 300 * time.Millisecond})
	fmt.Print(res.Text())
	// Output:
	// Exit code 2.
	// [10 bytes left out]
	// 1 error
	// sleep process timed out after 300ms without output.
	// Exit code 124.
}

func ExampleAttach() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "echo ready; sleep 60 & sleep 60")
	procgroup.Attach(cmd, procgroup.Stop{Grace: 10 * time.Second})
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	var word string
	_, _ = fmt.Fscanln(stdout, &word)
	fmt.Println(word)
	cancel() // both sleeps end too
	fmt.Println(cmd.Wait())
	// Output:
	// ready
	// signal: terminated
}

func ExampleLimits() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"),
		procgroup.Limits{Total: 300 * time.Millisecond})
	fmt.Println(res.ExitCode, res.Reason, res.Message)
	// Output: 124 total timeout sleep process timed out after 300ms.
}

func ExampleWithOptions() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"),
		procgroup.WithOptions(timeout.WithName("TLC")),
		procgroup.Limits{Total: 300 * time.Millisecond})
	fmt.Println(res.Message)
	// Output: TLC process timed out after 300ms.
}

func ExampleStop() {
	deaf := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
	hour := clock.NewMock() // which passes at once
	res, _ := procgroup.Run(context.Background(), deaf,
		procgroup.Limits{Total: time.Hour}, procgroup.WithOptions(timeout.WithClock(hour)),
		procgroup.Stop{Grace: 200 * time.Millisecond},
		procgroup.Capture{Each: procgroup.Lines(func(string, bool) { hour.Add(time.Hour) })})
	fmt.Println(res.ExitCode, res.Escalated, res.State)
	// Output: 124 true signal: killed
}

func ExampleStop_signal() {
	script := exec.Command("sh", "-c", "trap 'echo saved; exit' USR1; echo ready; while :; do sleep 0.1; done")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, _ := procgroup.Run(ctx, script,
		procgroup.Stop{Signal: syscall.SIGUSR1, AbortDelay: 30 * time.Second},
		procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
			if line == "ready" {
				cancel()
			}
		})})
	fmt.Printf("%d %s", res.ExitCode, res.Stdout)

	_, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.Stop{Signal: syscall.Signal(0)})
	var bad *timeout.ConfigError
	fmt.Println(errors.As(err, &bad))
	// Output:
	// 130 ready
	// saved
	// true
}

// The command is told that its time is running out, writes what it has, and ends by itself.
func ExampleStop_closing() {
	script := exec.Command("sh", "-c", "trap 'echo saved; exit 0' INT; echo ready; while :; do sleep 0.1; done")
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		res, err := procgroup.Run(ctx, script, procgroup.Stop{Closing: os.Interrupt},
			procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
				if line == "ready" { // so does the reserve of a limit, and a server that shuts down
					timeout.FromContext(ctx).BeginClosing()
				}
			})})
		fmt.Printf("%v %d %q %v\n", res.Reason, res.ExitCode, res.Stdout, err)
		return err
	}, timeout.Config{Total: time.Minute})
	// Output: exited 0 "ready\nsaved\n" <nil>
}

// A tool like terraform writes its state and releases its lock when it is asked to end. An
// abort kills at once, unless there is a grace.
func ExampleStop_abortDelay() {
	terraform := exec.Command("sh", "-c", `
		trap 'echo state written, lock released; exit 1' TERM
		echo applying; while :; do sleep 0.1; done`)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, _ := procgroup.Run(ctx, terraform,
		procgroup.WithOptions(timeout.WithName("terraform")),
		procgroup.Stop{AbortDelay: 30 * time.Second},
		procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
			if line == "applying" {
				cancel() // the user changes their mind
			}
		})})
	fmt.Println(res.Message)
	fmt.Printf("%s", res.Stdout)
	fmt.Println(res.ExitCode, res.State)
	// Output:
	// terraform process was aborted.
	// applying
	// state written, lock released
	// 130 exit status 1
}

func ExampleWithOptions_hooks() {
	hooks := timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Println(s.Tool, timeout.ExitCode(s.Err), s.Err)
		},
	}
	_, _ = procgroup.Run(context.Background(), exec.Command("sh", "-c", "exit 3"), procgroup.WithOptions(timeout.WithHooks(hooks)))
	// Output: sh 3 exit status 3
}

func ExampleWithOptions_logger() {
	plain := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "killed" { // "sleep (process 4711)", where the system tells
			return slog.Attr{}
		}
		return a
	}}
	logger := slog.New(slog.NewTextHandler(os.Stdout, plain))
	daemon := exec.Command("sh", "-c", "sleep 60 & exit 0") // which holds the streams
	_, _ = procgroup.Run(context.Background(), daemon, procgroup.WithOptions(timeout.WithLogger(logger)))
	// Output: level=WARN msg="command left something behind" tool=sh pipe_held=true error=<nil>
}

func ExampleCapture() {
	res, _ := procgroup.Run(context.Background(), exec.Command("printf", "one two €"), procgroup.Capture{Tail: 5})
	fmt.Printf("%q, dropped %d of %d\n", res.Stdout, res.Stdout.Dropped, res.Stdout.Total)
	res, _ = procgroup.Run(context.Background(), exec.Command("printf", "one two €"), procgroup.Capture{Tail: math.MaxInt})
	fmt.Printf("%q\n", res.Stdout)
	// Output:
	// "o €", dropped 6 of 11
	// "one two €"
}

func ExampleCapture_limit() {
	res, err := procgroup.Run(context.Background(), exec.Command("yes"), procgroup.Capture{Limit: 1 << 20})
	fmt.Println(res.ExitCode, res.Reason, err)
	fmt.Println(errors.Is(err, procgroup.TooMuchOutput))
	// Output:
	// 153 too much output yes wrote more than 1048576 bytes.
	// true
}

// The result has the last line, and the file all of them.
func ExampleCapture_spill() {
	dir, err := procgroup.NewSpillDir("", 1<<30)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	res, _ := procgroup.Run(context.Background(), exec.Command("seq", "1000", "2000"),
		procgroup.Capture{Tail: 5, Spill: dir, SpillMax: 64 << 20})
	all, err := os.ReadFile(res.Spill.Path)
	fmt.Printf("%q\n", res.Stdout)
	fmt.Println(len(all), res.Spill.Bytes, res.Spill.Err, err)
	// Output:
	// "2000\n"
	// 5005 5005 <nil> <nil>
}

// The second command finds no room, and ends well all the same.
func ExampleNewSpillDir() {
	dir, err := procgroup.NewSpillDir(os.TempDir(), 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	for range 2 {
		res, err := procgroup.Run(context.Background(), exec.Command("echo", "four"), procgroup.Capture{Spill: dir})
		fmt.Println(res.Spill.Bytes, errors.Is(res.Spill.Err, io.ErrShortWrite), err)
	}
	// Output:
	// 5 false <nil>
	// 0 true <nil>
}

func ExampleSpillDir_Remove() {
	dir, _ := procgroup.NewSpillDir("", 5)
	defer dir.Close()
	for range 2 {
		res, _ := procgroup.Run(context.Background(), exec.Command("echo", "four"), procgroup.Capture{Spill: dir})
		fmt.Println(res.Spill.Bytes, dir.Remove(res.Spill.Path))
	}
	// Output:
	// 5 <nil>
	// 5 <nil>
}

func ExampleSpillDir_Close() {
	dir, _ := procgroup.NewSpillDir("", 0)
	res, _ := procgroup.Run(context.Background(), exec.Command("echo", "four"), procgroup.Capture{Spill: dir})
	fmt.Println(dir.Close())
	_, err := os.Stat(res.Spill.Path)
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output:
	// <nil>
	// true
}

// The first line and the last one.
func ExampleCapture_head() {
	res, _ := procgroup.Run(context.Background(), exec.Command("seq", "1000", "2000"),
		procgroup.Capture{Head: 8, Tail: 8})
	fmt.Print(res.Stdout.Text())
	fmt.Println(res.Stdout.Dropped)
	// Output:
	// 1000
	// [999 lines, 4995 bytes left out]
	// 2000
	// 4989
}

// The output of both streams in the order in which it was written.
func ExampleCapture_onePipe() {
	res, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "echo first >&2; echo second; echo third >&2"),
		procgroup.Capture{OnePipe: true})
	fmt.Printf("%q %v\n", res.Combined, err)
	// Output:
	// "first\nsecond\nthird\n" <nil>
}

func ExampleCapture_each() {
	var out, problems strings.Builder
	_, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "echo hello; echo problem >&2"),
		procgroup.Capture{Each: func(c procgroup.Chunk) {
			if c.Stderr {
				problems.Write(c.Data)
			} else {
				out.Write(c.Data)
			}
		}})
	fmt.Printf("%q %q %v\n", out.String(), problems.String(), err)
	// Output: "hello\n" "problem\n" <nil>
}

func ExampleContainment() {
	res, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.Group)
	fmt.Println(res.Contained, err)
	_, err = procgroup.Run(context.Background(), exec.Command("true"), procgroup.Job)
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	// Output:
	// group <nil>
	// true
}

func ExampleStop_orphans() {
	// A daemon that holds no stream of the command.
	start := exec.Command("sh", "-c", "echo started; exec >/dev/null 2>&1; sleep 0.5 &")
	res, err := procgroup.Run(context.Background(), start, procgroup.Stop{Orphans: true})
	fmt.Printf("%s%v %v\n", res.Stdout, res.PipeHeld, err)
	// Output:
	// started
	// false <nil>
}

// Lines that report progress become heartbeats that carry it. A server that relays the
// heartbeats to its client passes it on.
func ExampleLines() {
	tool := func(ctx context.Context) error {
		_, err := procgroup.Run(ctx, exec.Command("printf", `10%%\r20%%\rdone\n`),
			procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
				if percent, ok := strings.CutSuffix(line, "%"); ok {
					heartbeat.BeatWith(ctx, percent)
				}
				fmt.Println(line)
			})})
		return err
	}
	fmt.Println(timeout.Run(context.Background(), tool, timeout.FastTools()))
	// Output:
	// 10%
	// 20%
	// done
	// <nil>
}

func ExampleOutput_String() {
	res, _ := procgroup.Run(context.Background(), exec.Command("printf", "a€"), procgroup.Capture{Tail: 2})
	fmt.Printf("%q %x\n", res.Stdout.String(), res.Stdout.Bytes())
	// Output: "" 82ac
}

func ExampleOutput_Text() {
	res, _ := procgroup.Run(context.Background(), exec.Command("printf", `50 %%\r100 %%\n\033[32mdone\033[0m\n`))
	fmt.Printf("%q\n%q\n", res.Stdout.String(), res.Stdout.Text())
	// Output:
	// "50 %\r100 %\n\x1b[32mdone\x1b[0m\n"
	// "100 %\ndone\n"
}

func ExampleOutput_Bytes() {
	res, _ := procgroup.Run(context.Background(), exec.Command("printf", "abc"))
	fmt.Printf("%s %d %d\n", res.Stdout.Bytes(), res.Stdout.Total, res.Stdout.Dropped)
	// Output: abc 3 0
}

func ExampleReason_Error() {
	fmt.Println(procgroup.Exited, procgroup.IdleTimeout, procgroup.TotalTimeout, procgroup.Aborted)
	// Output: exited idle timeout total timeout aborted
}
