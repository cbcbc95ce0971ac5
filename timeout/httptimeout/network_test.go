package httptimeout_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
)

// bubble runs f as a test of its own in a bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Hour) }) // in the end, for handlers that nobody waits for
			f(t)
		})
	})
}

// exchange sends a request by hand, of which more may be missing, and returns all that comes back.
func exchange(t *testing.T, addr, request string, closeWrite bool) string {
	t.Helper()
	conn, err := simnet.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server may answer before it has read all
		io.WriteString(conn, request)
		if closeWrite {
			conn.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// get is what the client of s gets for a request.
func get(t *testing.T, s *httptest.Server) (*http.Response, string, error) {
	t.Helper()
	return getPath(t, s, "")
}

func getPath(t *testing.T, s *httptest.Server, path string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}
