package procgroup_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A compiler that prints nothing is working, not stuck.
func ExampleActivity() {
	limits := procgroup.WithLimits(timeout.Config{Idle: 500 * time.Millisecond, Total: time.Second})
	work := procgroup.Activity{CPU: true, IO: true}

	busy, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "while :; do :; done"), limits, work)
	fmt.Println(busy.Message)
	stuck, _ := procgroup.Run(context.Background(), exec.Command("sleep", "60"), limits, work)
	fmt.Println(stuck.Message)
	// Output:
	// sh process timed out after 1000ms.
	// sleep process timed out after 500ms without output or work.
}

// The processes of the command when its limit fired. The list prints as a table, which "%+v"
// prints for the error, too; this example prints only a part of it.
func ExampleProcessList() {
	res, _ := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 60; echo done"),
		procgroup.WithLimits(timeout.Config{Idle: time.Second}))
	for _, p := range res.Tree.Processes {
		fmt.Println(p.State, p.Args)
	}
	// Output:
	// sleeping [sh -c sleep 60; echo done]
	// sleeping [sleep 60]
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
		procgroup.WithContainment(procgroup.Helper))
	fmt.Printf("%s%v %v\n", res.Stdout, res.Contained, err)
	// Output:
	// hello
	// helper <nil>
}
