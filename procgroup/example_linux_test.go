package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/exec"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A compiler that prints nothing is working, not stuck.
func ExampleActivity() {
	limits := procgroup.Limits{Idle: 500 * time.Millisecond, Total: time.Second}
	work := procgroup.Activity{CPU: true, IO: true}

	busy, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "while :; do :; done"), limits, work)
	fmt.Println(busy.Message)
	stuck, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"), procgroup.Limits{Idle: 500 * time.Millisecond}, work)
	fmt.Println(stuck.Message)
	// Output:
	// sh process timed out after 1000ms.
	// sleep process timed out after 500ms without output or work.
}

// The processes of the command when its limit fired. The list prints as a table, which "%+v"
// prints for the error, too; this example prints only a part of it.
func ExampleProcessList() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"),
		procgroup.Limits{Idle: 300 * time.Millisecond})
	for _, p := range res.Tree.Processes {
		fmt.Println(p.Args)
	}
	// Output: [sleep 60]
}

func ExampleProcessList_String() {
	list := procgroup.ProcessList{Processes: []procgroup.ProcessInfo{
		{Pid: 4711, State: "sleeping", Age: 2 * time.Minute, Wait: "do_wait", Args: []string{"make", "-j8"}},
	}}
	fmt.Print(list)
	// Output:
	// PID   STATE     CPU  AGE   WAITS IN  COMMAND
	// 4711  sleeping  0s   2m0s  do_wait   make -j8
}

func ExampleHelperMain() {
	// In a program this is the first line of main.
	procgroup.HelperMain()

	res, err := procgroup.Run(context.Background(), exec.Command("echo", "hello"),
		procgroup.Helper)
	fmt.Printf("%s%v %v\n", res.Stdout, res.Contained, err)
	// Output:
	// hello
	// helper <nil>
}

func ExampleInput_stop() {
	cmd := exec.Command("sh", "-c", "printf 'Continue? [y/N] '; read answer")
	in, err := cmd.StdinPipe() // nobody answers
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	_, err = procgroup.Run(context.Background(), cmd, procgroup.Input{Stop: true})
	fmt.Println(err)
	fmt.Println(errors.Is(err, procgroup.WaitingForInput), timeout.ExitCode(err))
	// Output:
	// sh waits for input: Continue? [y/N]
	// true 124
}

func ExampleInput() {
	cmd := exec.Command("sh", "-c", `printf 'Your name? '; read name; echo "Hello, $name."`)
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	r, err := procgroup.Run(context.Background(), cmd, procgroup.Input{Notify: func(w procgroup.InputWait) {
		if w.Certain {
			fmt.Println(w)
			fmt.Fprintln(in, "Ada")
		}
	}})
	fmt.Println(r.Stdout, err)
	// Output:
	// waits for input: Your name?
	// Your name? Hello, Ada.
	//  <nil>
}

func ExampleProcess_Input() {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	p, err := procgroup.Start(context.Background(), cmd)
	if err != nil {
		log.Fatal(err)
	}
	for p.Input().Pid == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println(p.Input())
	in.Close()
	_, err = p.Wait()
	fmt.Println(err)
	// Output:
	// waits for input
	// <nil>
}

func ExampleProcess_Answered() {
	cmd := exec.Command("sh", "-c", "read name; sleep 0.1")
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	p, err := procgroup.Start(context.Background(), cmd)
	if err != nil {
		log.Fatal(err)
	}
	for p.Input().Pid == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintln(in, "Ada")
	p.Answered()
	fmt.Printf("waits: %t\n", p.Input().Pid != 0)
	_, err = p.Wait()
	fmt.Println(err)
	// Output:
	// waits: false
	// <nil>
}

func ExampleInput_unattended() {
	cmd := exec.Command("sh", "-c", `echo "editor: $GIT_EDITOR, pager: $PAGER"`)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "PAGER=more"}
	r, err := procgroup.Run(context.Background(), cmd, procgroup.Input{Unattended: true})
	fmt.Println(strings.TrimSpace(r.Stdout.String()), err)
	// Output: editor: true, pager: more <nil>
}

func ExampleInputWait_String() {
	fmt.Println(procgroup.InputWait{Pid: 42, Certain: true, Prompt: "Password:"})
	// Output: waits for input: Password:
}

// A password is asked at the terminal, which does not echo the answer.
func ExampleTerminal() {
	cmd := exec.Command("bash", "-c", `read -s -p "Password: " word </dev/tty; echo; echo "${#word} characters"`)
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	r, err := procgroup.Run(context.Background(), cmd, procgroup.Terminal{Rows: 24, Cols: 80},
		procgroup.Input{Notify: func(w procgroup.InputWait) {
			if w.Secret {
				fmt.Fprintln(in, "sesame")
			}
		}})
	fmt.Printf("%q %v\n", r.Stdout.String(), err)
	// Output: "Password: \r\n6 characters\r\n" <nil>
}

func ExampleProcess_Interrupt() {
	cmd := exec.Command("bash", "-c", "trap 'sleep 0.2; echo interrupted; exit 1' INT; echo ready; while :; do sleep 0.1; done")
	ready := make(chan struct{})
	p, err := procgroup.Start(context.Background(), cmd, procgroup.Terminal{Rows: 24, Cols: 80},
		procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
			if line == "ready" {
				close(ready)
			}
		})})
	if err != nil {
		log.Fatal(err)
	}
	<-ready
	if err := p.Interrupt(); err != nil {
		log.Fatal(err)
	}
	r, err := p.Wait()
	fmt.Printf("%q %v\n", r.Stdout.String(), err)
	// Output: "ready\r\n^Cinterrupted\r\n" exit status 1
}

func ExampleProcess_Resize() {
	cmd := exec.Command("sh", "-c", "read line; stty size")
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	p, err := procgroup.Start(context.Background(), cmd, procgroup.Terminal{Rows: 24, Cols: 80})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Resize(50, 132); err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(in, "go on")
	r, err := p.Wait()
	fmt.Printf("%q %v\n", r.Stdout.String(), err)
	// Output: "go on\r\n50 132\r\n" <nil>
}

// A test that hangs says where, before the limit stops it.
func ExampleStop_stacks() {
	cmd := command("hang") // a program in Go that prints "ready", and hangs in a function of this name

	hour := clock.NewMock() // which passes as soon as the program hangs
	res, _ := procgroup.Run(context.Background(), cmd, procgroup.Stop{Stacks: true},
		procgroup.Limits{Idle: time.Hour}, procgroup.WithOptions(timeout.WithClock(hour)),
		procgroup.Capture{Each: func(c procgroup.Chunk) {
			if strings.HasSuffix(string(c.Data), "half") {
				hour.Add(time.Hour)
			}
		}})
	fmt.Printf("%v, %d, %q\n", res.Reason, res.ExitCode, res.Stdout.Text())
	fmt.Println(strings.Contains(res.Stacks.Text(), ".hang("))
	// Output:
	// idle timeout, 124, "ready\nhalf"
	// true
}

// The program sends READY=1 and then STATUS=half; a shell would use systemd-notify.
func ExampleNotify() {
	p, err := procgroup.Start(context.Background(), command("notify", "READY=1", "STATUS=half\nWATCHDOG=1"),
		procgroup.Notify{Socket: true}, procgroup.Limits{Total: time.Minute, Idle: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-p.Ready()
	res, err := p.Wait()
	fmt.Println(res.Notices.Status, err)
	// Output: half <nil>
}

// A command that package os starts is heard, too.
func ExampleListen() {
	l, err := procgroup.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = timeout.Run(context.Background(), func(ctx context.Context) error {
		l.Attend(ctx)
		cmd := command("notify", "STATUS=half\nWATCHDOG=1")
		cmd.Env = l.Environ(cmd.Env, 30*time.Second, time.Now().Add(time.Minute))
		return cmd.Run()
	}, timeout.Config{Total: time.Minute, Idle: 30 * time.Second})
	fmt.Println(l.Close().Status, err)
	// Output: half <nil>
}
