//go:build amd64 || arm64

package job_test

import (
	"context"
	"fmt"
	"os/exec"

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
