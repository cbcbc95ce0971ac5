package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// The page runs on a port of its own and can abort executions. A blank import alone registers it at
// /debug/tools of http.DefaultServeMux, without aborting.
func ExampleHandler() {
	server := httptest.NewServer(inspect.Handler(inspect.Options{Abort: true}))
	defer server.Close()

	_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.WithName("backup"))

	request, _ := http.NewRequest("GET", server.URL+"?format=json", nil)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status, response.Header.Get("Content-Type"))
	// Output: 200 OK application/json
}

// Only an operator with the password sees the page, from any machine.
func ExampleOptions() {
	h := inspect.Handler(inspect.Options{Allow: func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return user == "operator" && password == os.Getenv("OPERATOR_PASSWORD") && password != ""
	}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "https://tools.example/", nil))
	fmt.Println(w.Code)
	// Output: 403
}

// The request that the page sends aborts the execution.
func ExampleHandler_abort() {
	server := httptest.NewServer(inspect.Handler(inspect.Options{Abort: true}))
	defer server.Close()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		form := strings.NewReader(fmt.Sprintf("id=%d&abort=1", timeout.FromContext(ctx).ID()))
		request, _ := http.NewRequest("POST", server.URL, form)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", server.URL)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(err)
	// Output: Tool was aborted: stopped by hand
}
