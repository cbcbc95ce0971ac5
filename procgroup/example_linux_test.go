package procgroup_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A compiler that says nothing is at work, and not stuck.
func ExampleWithActivity() {
	limits := procgroup.WithLimits(timeout.Config{Idle: time.Second, Total: 5 * time.Second})
	work := procgroup.WithActivity(procgroup.Activity{CPU: true, IO: true})

	busy, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "while :; do :; done"), limits, work)
	fmt.Println(busy.Message)
	stuck, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"), limits, work)
	fmt.Println(stuck.Message)
	// Output:
	// sh process timed out after 5000ms.
	// sleep process timed out after 1000ms without output or work.
}

// What the command was doing when its limit fired. The tree prints as a table, which
// "%+v" of the error has too; here is some of it.
func ExampleTree() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 60; echo done"),
		procgroup.WithLimits(timeout.Config{Idle: 2 * time.Second}))
	for _, p := range res.Tree.Processes {
		fmt.Println(p.State, p.Args)
	}
	// Output:
	// sleeping [sh -c sleep 60; echo done]
	// sleeping [sleep 60]
}

func ExampleTree_String() {
	tree := procgroup.Tree{Processes: []procgroup.ProcessInfo{
		{Pid: 4711, State: "sleeping", Age: 2 * time.Minute, Wait: "do_wait", Args: []string{"make", "-j8"}},
	}}
	fmt.Print(tree)
	// Output:
	// PID   STATE     CPU  AGE   WAITS IN  COMMAND
	// 4711  sleeping  0s   2m0s  do_wait   make -j8
}

func ExampleHelperMain() {
	// In a program this is the first line of main.
	procgroup.HelperMain()

	res, err := procgroup.Run(context.Background(), exec.Command("echo", "hello"),
		procgroup.WithContainment(procgroup.Helper))
	fmt.Printf("%s%v %v\n", res.Stdout, res.Contained, err)
	// Output:
	// hello
	// helper <nil>
}
