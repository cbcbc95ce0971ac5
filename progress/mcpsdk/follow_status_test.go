package mcpsdk_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

func statusNotification(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"statusMessage":"by a person","createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":null,"pollInterval":10000}`, id, status)
}

// SPEC 11.9: over HTTP they come on the stream of notifications.
func TestFollowTasksStatusOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := &task.Tasks{Poll: time.Hour}
		defer tasks.Close()
		s := newTaskServer(t, mcpsdk.WithTasks(tasks))
		h := shared(t, s, mcp.StreamableHTTPOptions{})
		ids := make(chan string, 1)
		client := overNet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				h.ServeHTTP(&finding{w, ids}, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			select {
			case id := <-ids:
				time.Sleep(time.Second) // it may overtake the handle, on its other stream
				s.gate <- struct{}{}
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":%s}\n\n", statusNotification(id, "completed"))
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		}))
		cs := followingLegacy(t, &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: client, MaxRetries: -1}, nil)
		begun := time.Now()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"})
		if took := time.Since(begun); err != nil || texts(res)[0] != "through" || took > 2*time.Second {
			t.Errorf("%v, %v after %v", res, err, took)
		}
	})
}

// finding finds the id of a task in a response.
type finding struct {
	http.ResponseWriter
	ids chan<- string
}

func (f *finding) Write(p []byte) (int, error) {
	_, rest, ok := bytes.Cut(p, []byte(`"taskId":"`))
	n, err := f.ResponseWriter.Write(p)
	if id, _, _ := bytes.Cut(rest, []byte(`"`)); ok {
		f.Flush()
		select {
		case f.ids <- string(id):
		default:
		}
	}
	return n, err
}

func (f *finding) Flush() { _ = http.NewResponseController(f.ResponseWriter).Flush() }
