package httptimeout_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// A handler that streams is left alone for as long as it writes; one that is stuck is stopped.
func ExampleHandler() {
	export := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stuck" {
			<-r.Context().Done()
			return
		}
		for i := range 3 {
			fmt.Fprintf(w, "row %d\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	})
	server := httptest.NewServer(&httptimeout.Handler{
		Handler: export,
		Limits:  &timeout.Config{Total: time.Hour, Idle: time.Second},
	})
	defer server.Close()

	for _, path := range []string{"/rows", "/stuck"} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%s, retry after %q\n%s", res.Status, res.Header.Get("Retry-After"), body)
	}
	// Output:
	// 200 OK, retry after ""
	// row 0
	// row 1
	// row 2
	// 503 Service Unavailable, retry after "10"
	// The request timed out: there was no progress for 1 s.
}

// An API that answers everything in JSON answers a timeout so, too.
func ExampleHandler_stopped() {
	h := &httptimeout.Handler{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		Limits:  &timeout.Config{Total: 200 * time.Millisecond},
		Stopped: func(w http.ResponseWriter, r *http.Request, err *timeout.Error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGatewayTimeout)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": err.Kind.Error(), "limit_ms": err.Limit.Milliseconds()})
		},
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output:
	// 504 {"error":"total","limit_ms":200}
}

// A client tells the server for how long it waits.
func ExampleTransport() {
	server := httptest.NewServer(&httptimeout.Handler{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			left, _ := timeout.Remaining(r.Context())
			fmt.Fprintln(w, left.Round(time.Second), "are left")
		}),
		Limits:         &timeout.Config{Total: time.Hour},
		RequestTimeout: true,
	})
	defer server.Close()

	client := &http.Client{Transport: &httptimeout.Transport{}, Timeout: 20 * time.Second}
	res, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Print(string(body))
	// Output: 20s are left
}
