package mcpgo

import (
	"errors"
	"fmt"
	"io"
)

// A guarded holds the reader and the writer that were passed to Serve. mcp-go uses them on its own goroutines, where a
// panic would end the process. Therefore each Read and Write runs on a new goroutine, and returns an error if the
// caller's method panics or calls runtime.Goexit.
type guarded struct {
	in  io.Reader
	out io.Writer
}

func (g guarded) Read(p []byte) (int, error) {
	return guard(func() (int, error) { return g.in.Read(p) })
}

func (g guarded) Write(p []byte) (int, error) {
	return guard(func() (int, error) { return g.out.Write(p) })
}

var errEnded = errors.New("mcpgo: the reader or writer called runtime.Goexit")

func guard[T any](call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	returned := make(chan result, 1)
	go func() {
		r := result{err: errEnded}
		defer func() {
			if v := recover(); v != nil {
				r = result{err: fmt.Errorf("mcpgo: panic: %v", v)}
			}
			returned <- r
		}()
		value, err := call()
		r = result{value, err}
	}()
	r := <-returned
	return r.value, r.err
}
