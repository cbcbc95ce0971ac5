//go:build amd64 || arm64

package job_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// A command that asks for something is answered.
func ExampleUntil() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sh", "-c", "printf 'Continue? [y/N] '; read answer; echo $answer"))

	for j.Wait(ctx, job.Until{Input: true}) == job.WakeInput {
		fmt.Println(j.Status().Input)
		_, _, _ = j.Write(ctx, []byte("y\n"))
	}
	fmt.Printf("%q\n", j.ReadText(0, 0).Data)
	// Output:
	// waits for input: Continue? [y/N]
	// "Continue? [y/N] y\n"
}

// What is written to a terminal is data: Ctrl-C is no answer. Keys are typed with Type.
func ExampleJob_Type() {
	var jobs job.Set
	defer jobs.Close()
	ctx := context.Background()
	j, _ := jobs.Start(ctx, exec.Command("sh", "-c", "stty -echo; printf 'Name? '; read name; echo $name"), procgroup.Terminal{Rows: 24, Cols: 80})
	j.Wait(ctx, job.Until{Input: true})

	n, _, err := j.Write(ctx, []byte("Ad\x03a\n"))
	fmt.Println(n, err)

	_, _, _ = j.Type(ctx, []byte("\x15Ada\n")) // Ctrl-U takes back what stands in the line
	j.Wait(ctx, job.Until{})
	fmt.Printf("%q\n", j.ReadText(0, 0).Data)
	// Output:
	// 2 procgroup: the terminal does not pass on the byte 0x03: it interrupts the processes in the foreground; 2 bytes were typed
	// "Name? Ada\n"
}
