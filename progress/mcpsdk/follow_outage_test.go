package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/gateway"
)

// A decliner is a person who is asked to authorize a client, and does not.
type decliner struct {
	auth.AuthorizationCodeHandler
	asked atomic.Int32
}

func (d *decliner) Authorize(context.Context, *http.Request, *http.Response) error {
	d.asked.Add(1)
	return errors.New("declined")
}

// SPEC 11.10: a request that is not authorized ends the call at once, and nobody is asked twice.
func TestFollowTasksUnauthorized(t *testing.T) {
	for _, code := range []int{401, 403} {
		synctest.Test(t, func(t *testing.T) {
			s := newTaskServer(t)
			g := gateway.New(gateway.Status(code), map[string]int{"tasks/get": 1 << 30})
			g.Next = shared(t, s, mcp.StreamableHTTPOptions{Stateless: true})
			person := new(decliner)
			cs := following(t, &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: overNet(t, g), MaxRetries: -1, OAuthHandler: person}, nil)
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"}); err == nil || !strings.Contains(err.Error(), "declined") || person.asked.Load() != 1 {
				t.Errorf("%d: %v, asked %d times", code, err, person.asked.Load())
			}
			_ = s.tasks.Close()
		})
	}
}
