package procgroup_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

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
