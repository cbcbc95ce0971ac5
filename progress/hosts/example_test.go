package hosts_test

import (
	"fmt"

	"github.com/tooldeadline/tooldeadline/progress/hosts"
)

func ExampleFind() {
	host, known := hosts.Find("codex-mcp-client")
	fmt.Println(host.Name, known)
	within, _ := host.Budget().Answer(true)
	fmt.Println("answer within", within.Left)
	// Output:
	// codex true
	// answer within 4m50s
}

func ExampleAll() {
	for _, host := range hosts.All() {
		if host.Renewed {
			fmt.Println("progress keeps a call alive in", host.Name)
		}
	}
	// Output: progress keeps a call alive in opencode
}
