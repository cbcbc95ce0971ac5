package toolcall_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func ExampleOutcomeOf() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, timeout.Config{Total: time.Minute, Idle: 50 * time.Millisecond})
	o, ok := toolcall.OutcomeOf(err)
	fmt.Println(ok, o.Kind, o.ExitCode, o.Limit, o.Total, o.Idle)
	_, ok = toolcall.OutcomeOf(errors.New("no such file"))
	fmt.Println(ok)
	// Output:
	// true idle 124 50 60000 50
	// false
}
