package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
)

// A life is that of a process: a real one, or one in a bubble. What does not return ends the goroutine.
type life interface {
	Env(key string) string
	In() io.Reader
	Out() io.Writer
	Err() io.Writer
	Pid() int
	CloseOut()
	Sleep(time.Duration)
	Work(time.Duration) // uses the processor
	Beat()              // on the socket of NOTIFY_SOCKET
	Spawn()             // starts a process
	Dead() <-chan struct{}
	Hang()         // does not return
	Exit(code int) // does not return
}

// A realLife is this process.
type realLife struct{}

func (realLife) Env(key string) string { return os.Getenv(key) }
func (realLife) In() io.Reader         { return os.Stdin }
func (realLife) Out() io.Writer        { return os.Stdout }
func (realLife) Err() io.Writer        { return os.Stderr }
func (realLife) Pid() int              { return os.Getpid() }
func (realLife) CloseOut()             { _ = os.Stdout.Close() }
func (realLife) Sleep(d time.Duration) { time.Sleep(d) }
func (realLife) Work(d time.Duration)  { time.Sleep(d) } // only in bubbles does a server compute
func (realLife) Beat() {
	if err := notify.Send("WATCHDOG=1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
func (realLife) Dead() <-chan struct{} { return nil }
func (realLife) Hang()                 { select {} }
func (realLife) Exit(code int)         { os.Exit(code) }

func (realLife) Spawn() {
	cmd := exec.Command(os.Args[0], "sleeper")
	_ = cmd.Start()
	fmt.Fprintln(os.Stderr, "evil: started", cmd.Process.Pid)
}

// evil is an MCP server that does what servers should not do. It uses no SDK, and each tool is named
// after what it does.
func evil(p life) {
	e := &evilServer{life: p, out: make(chan struct{}, 1), answers: make(map[string]chan json.RawMessage), half: make(map[string]bool)}
	if d, err := time.ParseDuration(p.Env("EVIL_START")); err == nil {
		p.Sleep(d)
	}
	fmt.Fprintln(p.Err(), "evil: started")
	if text := p.Env("EVIL_END"); text != "" {
		fmt.Fprintln(p.Err(), text)
		p.Exit(3)
	}
	fmt.Fprint(p.Out(), p.Env("EVIL_BANNER"))
	in := bufio.NewReaderSize(p.In(), 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			fmt.Fprintln(p.Err(), "evil: stdin closed")
			p.Exit(0)
		}
		var m struct {
			ID             json.RawMessage
			Method         string
			Params, Result json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil {
			e.write(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
			continue
		}
		e.seen = append(e.seen, m.Method)
		if p.Env("EVIL_RUDE") != "" && (m.Method == "ping" || m.Method == "mcpdeadline/alive") {
			continue
		}
		switch m.Method {
		case "":
			e.mu.Lock()
			c := e.answers[string(m.ID)]
			e.mu.Unlock()
			if c != nil {
				c <- m.Result
			}
		case "initialize":
			e.answer(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"logging":{}},"serverInfo":{"name":"evil","version":"1"},"x-unknown":{"kept":[1,2.50]}}`)
		case "tools/list":
			e.answer(m.ID, `{"tools":[{"name":"sleep","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"_meta":{"theirs":1.50}},{"name":"echo","inputSchema":{"type":"object"}}],"x":1}`)
		case "server/discover":
			e.answer(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "notifications/cancelled":
			var p struct{ RequestID json.RawMessage }
			_ = json.Unmarshal(m.Params, &p)
			if e.half[string(p.RequestID)] {
				delete(e.half, string(p.RequestID))
				e.answer(p.RequestID, textResult("half of it", ""))
			}
		case "tools/call":
			var p struct {
				Name           string
				Arguments      map[string]any
				Meta           struct{ ProgressToken json.RawMessage } `json:"_meta"`
				InputResponses map[string]struct{ Action string }
				RequestState   string
			}
			_ = json.Unmarshal(m.Params, &p)
			if p.Name == "question" { // as in 2026-07-28
				go func() {
					if p.InputResponses == nil {
						e.Sleep(6 * time.Second)
						e.answer(m.ID, `{"resultType":"input_required","inputRequests":{"ok":{"method":"elicitation/create","params":{"message":"really?"}}},"requestState":"s1"}`)
						return
					}
					e.answer(m.ID, textResult(p.RequestState+" "+p.InputResponses["ok"].Action, `,"resultType":"complete"`))
				}()
				continue
			}
			switch ms, _ := p.Arguments["ms"].(float64); p.Name {
			case "deaf":
				e.Hang()
			case "half": // answered by this goroutine when it is cancelled, so that no other answer is earlier
				e.half[string(m.ID)] = true
				continue
			case "busy": // in the one thread that reads
				e.Work(time.Duration(ms) * time.Millisecond)
			}
			go e.call(m.ID, p.Name, p.Arguments, p.Meta.ProgressToken, strings.Join(e.seen, " "))
		case "no/answer":
		case "x/anew":
			e.answer(anew(m.ID), `{}`)
		case "ping", "logging/setLevel", "resources/subscribe":
			e.answer(m.ID, `{}`)
		case "x/echo":
			e.answer(m.ID, string(m.Params))
		default:
			if m.ID != nil {
				e.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no such method","data":{"method":"` + m.Method + `"}}}`)
			}
		}
	}
}

// anew returns an id in another spelling, as another library might write it.
func anew(id json.RawMessage) json.RawMessage {
	var v any
	_ = json.Unmarshal(id, &v)
	raw, _ := json.Marshal(v)
	return raw
}

type evilServer struct {
	life
	out     chan struct{} // has a value while somebody writes; a mutex would stop the time of a bubble
	mu      sync.Mutex
	answers map[string]chan json.RawMessage
	asked   int

	// of the goroutine that reads
	half map[string]bool // calls of the tool half
	seen []string
}

func (e *evilServer) write(line string) { e.print(line + "\n") }

func (e *evilServer) print(text string) {
	e.out <- struct{}{}
	_, _ = io.WriteString(e.Out(), text)
	<-e.out
}

func (e *evilServer) receive(c <-chan json.RawMessage) json.RawMessage {
	select {
	case got := <-c:
		return got
	case <-e.Dead():
		e.Hang()
	}
	panic("unreachable")
}

func (e *evilServer) answer(id json.RawMessage, result string) {
	e.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func textResult(text string, more string) string {
	quoted, _ := json.Marshal(text)
	return `{"content":[{"type":"text","text":` + string(quoted) + `}]` + more + `}`
}

func (e *evilServer) call(id json.RawMessage, tool string, args map[string]any, token json.RawMessage, seen string) {
	number := func(key string) int { n, _ := args[key].(float64); return int(n) }
	ms := time.Duration(number("ms")) * time.Millisecond
	every := func(do func(i int)) {
		for i, end := 1, time.Now().Add(ms); time.Now().Before(end); i++ {
			do(i)
			e.Sleep(50 * time.Millisecond)
		}
	}
	done := "done"
	switch tool {
	case "echo":
		done, _ = args["text"].(string)
	case "fail":
		e.answer(id, textResult("it did not work", `,"isError":true`))
		return
	case "error":
		e.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32602,"message":"no such tool"}}`)
		return
	case "seen":
		done = seen
	case "pid":
		done = fmt.Sprint(e.Pid())
	case "shut":
		e.CloseOut()
		e.Hang()
	case "hang":
		e.Hang()
	case "spawn":
		e.Spawn()
		e.Hang()
	case "exit":
		fmt.Fprintln(e.Err(), "goodbye")
		e.Exit(5)
	case "sleep":
		e.Sleep(ms)
	case "progress":
		every(func(i int) {
			if token != nil {
				e.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":1000,"message":"step %d","x":1}}`, token, i, i))
			}
		})
	case "log":
		every(func(i int) {
			e.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}`)
		})
	case "stderr":
		every(func(i int) { fmt.Fprint(e.Err(), ".") })
	case "notify":
		every(func(int) { e.Beat() })
	case "burn":
		e.Work(ms)
	case "ask":
		e.mu.Lock()
		e.asked++
		mine := fmt.Sprint(e.asked)
		c := make(chan json.RawMessage, 1)
		e.answers[mine] = c
		e.mu.Unlock()
		as := mine
		if way, _ := args["as"].(string); way != "" {
			as = way
			e.mu.Lock()
			e.answers[way] = c
			e.mu.Unlock()
		}
		e.write(`{"jsonrpc":"2.0","id":` + as + `,"method":"elicitation/create","params":{"message":"really?"}}`)
		done = string(e.receive(c))
	case "long":
		e.Sleep(ms)
		// Not by textResult, which would look at each of what may be 64 MiB.
		e.answer(id, `{"content":[{"type":"text","text":"`+strings.Repeat("x", number("bytes"))+`"}]}`)
		return
	case "endless": // a line without an end
		e.print(strings.Repeat("x", number("megabytes")<<20) + "\n")
	case "print": // to stdout, and no newline
		text, _ := args["text"].(string)
		e.print(text)
	case "anew":
		id = anew(id)
	case "late":
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, args["token"]))
	}
	e.answer(id, textResult(done, ""))
}
