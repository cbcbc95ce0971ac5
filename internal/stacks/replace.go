package stacks

import "context"

type replaceKey struct{}

// Replace gives the execution that is run with the context something to show in place of
// the stack of its function: a command's processes, say, where the function only waits for
// them. describe is called when a limit fires, before anything is cancelled, so it must be
// quick. It may return nil, and must be safe for concurrent use.
func Replace(ctx context.Context, describe func() []byte) context.Context {
	return context.WithValue(ctx, replaceKey{}, describe)
}

// Replacement returns what Replace was given, nil if it was not called.
func Replacement(ctx context.Context) func() []byte {
	describe, _ := ctx.Value(replaceKey{}).(func() []byte)
	return describe
}
