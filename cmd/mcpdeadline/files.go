package main

import (
	"context"
	"fmt"
	"time"
)

// fileLimit is how long a file that a flag names may take. It may be a pipe that no other process has opened, or on a
// file server that does not answer, and then the system call that opens it cannot be interrupted.
const fileLimit = 10 * time.Second

// within returns what f returns, or an error after fileLimit, or when ctx is done. key is the name of the flag whose
// file f opens, for the error.
func within[T any](ctx context.Context, key string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := f()
		results <- result{value, err}
	}()
	var none T
	select { // if ctx has ended too, the program ends in any case
	case r := <-results:
		return r.value, r.err
	case <-time.After(fileLimit):
		return none, fmt.Errorf("%s: the file did not open within %v", key, fileLimit)
	case <-ctx.Done():
		return none, fmt.Errorf("%s: %w", key, context.Cause(ctx))
	}
}
