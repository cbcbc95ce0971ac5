package request_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A client without an SDK, which speaks JSON-RPC over a pair of pipes: the server reports
// progress five times, each time later than the Timeout allows for the answer.
func Example() {
	fromServer, toServer := slowServer()
	client := request.New(&request.Options{PerMethod: map[string]request.Limits{
		"tools/call": {Timeout: 10 * time.Second, MaxTotal: time.Minute, ResetOnProgress: true},
	}})

	answers := make(chan string, 1)
	go func() { // the reader
		for lines := bufio.NewScanner(fromServer); lines.Scan(); {
			var message struct {
				Method, Result string
				Params         struct{ ProgressToken any }
			}
			_ = json.Unmarshal(lines.Bytes(), &message)
			if message.Method == "notifications/progress" {
				client.Progress(nil, message.Params.ProgressToken)
			} else {
				answers <- message.Result
			}
		}
	}()

	answer, err := request.Do(context.Background(), client, request.Call{Method: "tools/call"},
		func(ctx context.Context, token string) (string, error) {
			fmt.Fprintf(toServer, `{"method":"tools/call","params":{"_meta":{"progressToken":%q}}}`+"\n", token)
			select {
			case answer := <-answers:
				return answer, nil
			case <-ctx.Done():
				fmt.Fprintln(toServer, `{"method":"notifications/cancelled"}`)
				return "", ctx.Err()
			}
		})
	fmt.Println(answer, err)
	// Output: done <nil>
}

// slowServer answers one request after 50 ms, and reports progress every 10 ms before that.
func slowServer() (output io.Reader, input io.Writer) {
	in, input := io.Pipe()
	output, out := io.Pipe()
	go func() {
		lines := bufio.NewScanner(in)
		lines.Scan()
		var call struct {
			Params struct {
				Meta struct{ ProgressToken string } `json:"_meta"`
			}
		}
		_ = json.Unmarshal(lines.Bytes(), &call)
		for i := range 5 {
			time.Sleep(10 * time.Millisecond)
			fmt.Fprintf(out, `{"method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`+"\n", call.Params.Meta.ProgressToken, i)
		}
		fmt.Fprintln(out, `{"result":"done"}`)
		_ = out.Close()
	}()
	return output, input
}

// silent is a server that does not answer.
func silent(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func ExampleDo() {
	c := request.New(&request.Options{PerMethod: map[string]request.Limits{"tools/call": {Timeout: 10 * time.Millisecond}}})
	_, err := request.Do(context.Background(), c, request.Call{Method: "tools/call"}, silent)
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), timeout.ExitCode(err))
	// Output:
	// calling "tools/call": Request timed out: no answer for 10ms
	// true 124
}

func ExampleError() {
	c := request.New(&request.Options{PerMethod: map[string]request.Limits{"tools/list": {MaxTotal: 10 * time.Millisecond}}})
	_, err := request.Do(context.Background(), c, request.Call{Method: "tools/list"}, silent)
	var stop *request.Error
	if errors.As(err, &stop) && stop.Timeout() {
		fmt.Println(request.CodeTimeout, stop.Message(), stop.Stop.Limit)
	}
	// Output: -32001 Maximum total timeout exceeded 10ms
}

// The limits of a method are its own, or those of the longest pattern, or the defaults.
func ExampleNew() {
	c := request.New(&request.Options{Limits: &request.Limits{Timeout: 30 * time.Millisecond}, PerMethod: map[string]request.Limits{
		"resources/read": {Timeout: 10 * time.Millisecond},
		"resources/*":    {Timeout: 20 * time.Millisecond},
	}})
	for _, method := range []string{"resources/read", "resources/list", "ping"} {
		_, err := request.Do(context.Background(), c, request.Call{Method: method}, silent)
		fmt.Println(err)
	}
	// Output:
	// calling "resources/read": Request timed out: no answer for 10ms
	// calling "resources/list": Request timed out: no answer for 20ms
	// calling "ping": Request timed out: no answer for 30ms
}

func ExampleDefaultLimits() {
	limits := request.DefaultLimits()
	limits["tools/call"] = request.Limits{Timeout: 2 * time.Minute, ResetOnProgress: true}
	for _, method := range []string{"tools/call", "tools/list", "initialize"} {
		fmt.Println(method, limits[method].Timeout)
	}
	// Output:
	// tools/call 2m0s
	// tools/list 10s
	// initialize 5s
}

func ExampleWithLimits() {
	c := request.New(nil)
	ctx := request.WithLimits(context.Background(), request.Limits{Timeout: 10 * time.Millisecond})
	_, err := request.Do(ctx, c, request.Call{Method: "ping"}, silent)
	fmt.Println(err)
	// Output: calling "ping": Request timed out: no answer for 10ms
}

// The caller's own token travels inside the one that is sent, and comes back to its handler.
func ExampleLimiter_Progress() {
	c := request.New(nil)
	call := request.Call{Session: "server 1", Method: "tools/call", Token: 7}
	_, _ = request.Do(context.Background(), c, call, func(_ context.Context, token string) (string, error) {
		fmt.Println(c.Progress("server 1", token)) // as the reader would
		fmt.Println(c.Progress("server 1", "another's"))
		return "", nil
	})
	// Output:
	// 7 true
	// another's true
}

func ExampleRetry() {
	c := request.New(&request.Options{PerMethod: map[string]request.Limits{"tools/list": {Timeout: 10 * time.Millisecond}}})
	repeatable := request.Repeatable("tools/list", "resources/*")
	tries := 0
	list := func() (string, error) {
		return request.Do(context.Background(), c, request.Call{Method: "tools/list"}, func(ctx context.Context, token string) (string, error) {
			if tries++; tries < 3 {
				return silent(ctx, token)
			}
			return "three tools", nil
		})
	}
	again := func(err error) bool { return repeatable("tools/list") && request.TimedOut(err) }
	answer, err := request.Retry(context.Background(), request.Backoff{First: time.Millisecond}, again, list)
	fmt.Println(answer, err, tries)
	// Output: three tools <nil> 3
}

func ExampleRepeatable() {
	repeatable := request.Repeatable("resources/*", "tools/*")
	fmt.Println(repeatable("resources/read"), repeatable("tools/list"), repeatable("prompts/get"))
	fmt.Println(repeatable("tools/call")) // never
	// Output:
	// true true false
	// false
}

func ExampleTimedOut() {
	c := request.New(&request.Options{PerMethod: map[string]request.Limits{"tools/list": {Timeout: 10 * time.Millisecond}}})
	_, err := request.Do(context.Background(), c, request.Call{Method: "tools/list"}, func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	fmt.Println(request.TimedOut(err), request.TimedOut(errors.New("no such tool")))
	// Output: true false
}

func ExamplePermanent() {
	_, err := exec.LookPath("a server that is not installed")
	fmt.Println(request.Permanent(err), request.Permanent(errors.New("connection refused")))
	// Output: true false
}

func ExampleDeclarations() {
	c := request.New(nil)
	ceiling := request.Limits{Timeout: 10 * time.Minute, MaxTotal: time.Hour}

	var server request.Declarations
	// The result of tools/list.
	server.Tool("index", map[string]any{policy.DeclarationKey: map[string]any{"totalMs": 20.0, "idleMs": 0.0}})

	call := request.Call{Method: "tools/call", Declared: server.Limits("tools/call", "index", ceiling)}
	fmt.Println(call.Declared.MaxTotal)
	answer, err := request.Do(context.Background(), c, call, func(context.Context, string) (string, error) { return "done", nil })
	fmt.Println(answer, err)
	// Output:
	// 1.02s
	// done <nil>
}

// While a server does not answer, a client asks for its task less and less often. One that keeps the result for less
// than its interval is asked before that.
func ExamplePolls() {
	var p request.Polls
	expires := time.Now().Add(time.Hour)
	for range 3 {
		wait, ok := p.Failed(time.Second, expires)
		fmt.Println(wait, ok)
	}
	fmt.Println(p.Answered(10*time.Second, expires))
	fmt.Println(p.Answered(10*time.Second, time.Now().Add(4*time.Second)).Round(time.Second))
	// Output:
	// 1s true
	// 2s true
	// 4s true
	// 10s
	// 2s
}

// The defaults, but for the calls of tools.
func ExampleOptions() {
	perMethod := request.DefaultLimits()
	perMethod["tools/call"] = request.Limits{Timeout: 10 * time.Millisecond}
	c := request.New(&request.Options{PerMethod: perMethod})
	_, err := request.Do(context.Background(), c, request.Call{Method: "tools/call"}, func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done() // a server that does not answer
		return "", ctx.Err()
	})
	fmt.Println(err)
	// Output: calling "tools/call": Request timed out: no answer for 10ms
}

// The reader of a connection goes on while a handler is slow.
func ExampleLimiter_Handlers() {
	add := request.New(nil).Handlers(0, 0)
	done := make(chan struct{})
	for i := range 3 {
		add("session", func() {
			time.Sleep(10 * time.Millisecond)
			fmt.Println("progress", i)
			if i == 2 {
				close(done)
			}
		})
	}
	fmt.Println("read")
	<-done
	// Output:
	// read
	// progress 0
	// progress 1
	// progress 2
}
