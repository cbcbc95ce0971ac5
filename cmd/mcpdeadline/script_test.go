package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// script returns a server that answers everything, but for the messages with which serve does something else: then it
// returns true.
func script(serve func(p *virtual, m *jsonrpc.Message) bool) func(*virtual) {
	return func(p *virtual) {
		lines := bufio.NewReaderSize(p.in, 64<<10)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				p.Exit(0)
			}
			m := jsonrpc.Parse(bytes.TrimSuffix(line, []byte("\n")))
			p.mu.Lock()
			p.seen = append(p.seen, m.Method)
			p.mu.Unlock()
			if serve != nil && serve(p, m) || !m.IsRequest() {
				continue
			}
			switch m.Method {
			case "initialize":
				p.answer(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"script","version":"1"}}`)
			case "tools/list":
				p.answer(m, `{"tools":[{"name":"a"}]}`)
			case "tools/call":
				p.answer(m, textResult(fmt.Sprint("run ", p.run), ""))
			default:
				p.answer(m, `{}`)
			}
		}
	}
}

// say writes a line to stdout, whole.
func (p *virtual) say(line string) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	_, _ = io.WriteString(p.out, line+"\n")
}

func (p *virtual) answer(m *jsonrpc.Message, result string) {
	p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

// seen returns the methods that the last run has got.
func (vm *virtualMachine) seen() []string {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	last := vm.runs[len(vm.runs)-1]
	last.mu.Lock()
	defer last.mu.Unlock()
	return slices.Clone(last.seen)
}

// connectScript starts a proxy in front of such a server. Messages have 4 MiB at most.
func connectScript(t *testing.T, serve func(p *virtual, m *jsonrpc.Message) bool, flags ...string) *client {
	t.Helper()
	vm := &virtualMachine{program: script(serve), most: most}
	return vm.host(t, append(flags, "--", "server")...)
}

// most is how many bytes a message has at most in such tests.
const most = 4 << 20

// newProxy returns a proxy within the test, which has yet to get its server.Dialer.
func newProxy(t *testing.T, args []string) (*calls.Proxy, *options) {
	t.Helper()
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	profile, _, err := o.profile()
	if err != nil {
		t.Fatal(err)
	}
	p := o.proxy(profile, args, most)
	p.Logger, p.Stderr = slog.New(slog.DiscardHandler), io.Discard
	return p, o
}
