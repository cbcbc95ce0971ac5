//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// SPEC 3.24, 16.8: a host that does not read holds up neither the end of a call nor that of the proxy.
func TestHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		end  func(*os.Process, io.Closer) error
	}{
		{"SIGTERM", func(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGTERM) }},
		{"SIGINT", func(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGINT) }},
		{"SIGHUP", func(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGHUP) }},
		{"the end of stdin", func(_ *os.Process, in io.Closer) error { return in.Close() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "calls")
			args := []string{"-total", "4s", "-idle", "0", "-keep-alive", "50ms", "-log", log}
			cmd := exec.Command(self(t), append(args, evilArgs(t)...)...)
			mark := leftovers.Mark()
			cmd.Env = append(cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", mark)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cmd.StdoutPipe(); err != nil { // never read
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			t.Cleanup(func() {
				select {
				case <-ended:
				default:
					_ = cmd.Process.Kill()
					<-ended
				}
				leftovers.None(t, mark)
			})
			go func() {
				_, _ = cmd.Process.Wait()
				close(ended)
			}()
			send := func(format string, args ...any) {
				if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
					t.Error(err)
				}
			}
			send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":%s}`, initialize)
			send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{"progressToken":%[1]d}}}`
			send(call, 1, "flood", `{"lines":40000}`)
			send(call, 2, "hang", `{}`)
			send(call, 3, "progress", `{"ms":60000}`)
			eventually(t, "the ends of the calls", func() bool {
				lines, _ := os.ReadFile(log)
				return strings.Count(string(lines), `"outcome":"total"`) >= 2
			})
			if err := tc.end(cmd.Process, in); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(generous):
				t.Error("it does not end")
			}
		})
	}
}
