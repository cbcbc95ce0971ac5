package mcpgo

import (
	"errors"
	"fmt"
	"io"
)

// A guarded is the reader and the writer of the caller's that Serve was given. mcp-go uses them on goroutines that
// nobody else can recover; so each call has one of its own, and a panic or a Goexit is an error of that call.
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
