package adapter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

func ExampleStanding() {
	again := func(err error) bool {
		fmt.Println("failed:", err)
		return false // true: again in 30 s
	}
	_, err := adapter.Standing(context.Background(), again, func() (string, error) { return "", errors.New("refused") })
	fmt.Println(err)
	// Output:
	// failed: refused
	// refused
}
