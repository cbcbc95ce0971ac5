//go:build unix

package job_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// One call starts a server and waits until it is ready; another one looks at it, and a third ends it.
func Example() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()

	j, err := jobs.Start(ctx, exec.Command("sh", "-c", "echo listening on :8080; sleep 60"),
		procgroup.Limits{Total: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(j.Wait(ctx, job.Until{Match: regexp.MustCompile("listening"), Silence: time.Minute}))

	p := jobs.Get(j.ID).ReadText(0, 0)
	fmt.Printf("%s%d, %v\n", p.Data, p.Next, j.Status().State)

	j.Stop()
	fmt.Println(j.Wait(ctx, job.Until{}), j.Status().Result.ExitCode)
	// Output:
	// match
	// listening on :8080
	// 19, running
	// end 130
}

// A Set holds a bounded number of jobs. Those that have ended make room, the first one first.
func ExampleSet_Start() {
	jobs := job.Set{MaxJobs: 2}
	defer jobs.Close()
	ctx := context.Background()

	first, _ := jobs.Start(ctx, exec.Command("true"))
	first.Wait(ctx, job.Until{})
	for range 3 {
		_, err := jobs.Start(ctx, exec.Command("sleep", "60"))
		fmt.Println(errors.Is(err, job.ErrFull), err)
	}
	// Output:
	// false <nil>
	// false <nil>
	// true job: the set is full: at most 2 jobs and 67108864 bytes of output
}

func ExampleSet_Get() {
	var jobs job.Set
	defer jobs.Close()

	j, _ := jobs.Start(context.Background(), exec.Command("true"))
	fmt.Println(jobs.Get(1) == j, jobs.Get(2) == nil)
	// Output: true true
}

func ExampleSet_List() {
	var jobs job.Set
	defer jobs.Close()

	for _, seconds := range []string{"60", "61"} {
		_, _ = jobs.Start(context.Background(), exec.Command("sleep", seconds))
	}
	for _, j := range jobs.List() {
		fmt.Println(j.ID, j.Args, j.Status().State)
	}
	// Output:
	// 1 [sleep 60] running
	// 2 [sleep 61] running
}

func ExampleSet_Close() {
	var jobs job.Set
	j, _ := jobs.Start(context.Background(), exec.Command("sleep", "60"))

	fmt.Println(jobs.Close())
	err := j.Status().Err
	fmt.Println(errors.Is(err, job.ErrClosed), err)
	_, err = jobs.Start(context.Background(), exec.Command("sleep", "60"))
	fmt.Println(err)
	// Output:
	// <nil>
	// true Tool was aborted: job: the set is closed
	// job: the set is closed
}

// The caller's own time ends a wait, and not the job.
func ExampleJob_Wait() {
	var jobs job.Set
	defer jobs.Close()
	j, _ := jobs.Start(context.Background(), exec.Command("sh", "-c", "read line; echo got $line"))

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(j.Wait(ctx, job.Until{Output: true}))

	ctx = context.Background()
	_, _, _ = j.Write(ctx, []byte("it\n"))
	fmt.Println(j.Wait(ctx, job.Until{Output: true}))
	fmt.Println(j.Wait(ctx, job.Until{}))
	// Output:
	// caller
	// output
	// end
}

// A model's pattern that would take too long is refused before anybody waits for it.
func ExampleCompile() {
	re, err := job.Compile(`listening on .*:(\d+)`)
	fmt.Println(re, err)
	_, err = job.Compile(`(?:x{1000}y?){1}` + strings.Repeat(`x{1000}`, 9))
	fmt.Println(err != nil)
	// Output:
	// listening on .*:(\d+) <nil>
	// true
}

// A reader follows the output to its end.
func ExampleJob_Read() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.1; done"))

	for p := (job.Piece{}); !p.Last; {
		j.Wait(ctx, job.Until{Output: true, From: p.Next})
		p = j.Read(p.Next, 0)
		fmt.Printf("%s", p.Data)
	}
	// Output:
	// 1
	// 2
	// 3
}

func ExampleJob_ReadText() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("printf", `10 %%\r50 %%\r100 %%\n\033[32mdone\033[0m\n`))
	j.Wait(ctx, job.Until{})

	fmt.Printf("%q\n", j.Read(0, 0).Data)
	fmt.Printf("%q\n", j.ReadText(0, 0).Data)
	// Output:
	// "10 %\r50 %\r100 %\n\x1b[32mdone\x1b[0m\n"
	// "100 %\ndone\n"
}

// Writing to a job that has ended says how it has ended.
func ExampleJob_Write() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sh", "-c", "read line; exit $line"))

	n, _, err := j.Write(ctx, []byte("3\n"))
	fmt.Println(n, err)
	j.Wait(ctx, job.Until{})
	n, status, err := j.Write(ctx, []byte("4\n"))
	fmt.Println(n, status.State, status.Result.ExitCode, err)
	// Output:
	// 2 <nil>
	// 0 ended 3 <nil>
}

func ExampleJob_CloseInput() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sort"))

	_, _, _ = j.Write(ctx, []byte("b\na\n"))
	j.CloseInput()
	j.Wait(ctx, job.Until{})
	fmt.Printf("%s", j.Read(0, 0).Data)
	// Output:
	// a
	// b
}

func ExampleJob_Interrupt() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sleep", "60"))

	_, err := j.Interrupt()
	fmt.Println(err, j.Wait(ctx, job.Until{}), j.Status().Result.ExitCode)
	// Output: <nil> end 130
}

func ExampleJob_Signal() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sleep", "60"))

	_, err := j.Signal(syscall.SIGTERM)
	fmt.Println(err, j.Wait(ctx, job.Until{}), j.Status().Result.ExitCode)
	// Output: <nil> end 143
}

func ExampleJob_Stop() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sleep", "60"))

	j.Stop()
	j.Wait(ctx, job.Until{})
	s := j.Status()
	fmt.Println(s.Result.Reason, errors.Is(s.Err, timeout.ErrAborted))
	// Output: aborted true
}

func ExampleJob_Status() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sh", "-c", "sleep 60"), procgroup.Limits{Total: 100 * time.Millisecond})

	fmt.Println(j.Status().State)
	j.Wait(ctx, job.Until{})
	s := j.Status()
	fmt.Println(s.State, s.Result.Message, errors.Is(s.Err, timeout.ErrTotal))
	// Output:
	// running
	// ended sh process timed out after 100ms. true
}
