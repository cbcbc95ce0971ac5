package mcpsdk_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// tokens are progress tokens as they stand in JSON.
var tokens = []struct {
	name, token string
	exact       bool // without a wrapper
}{
	{"string", `"t1"`, true},
	{"empty string", `""`, true},
	{"string of digits", `"9007199254740993"`, true},
	{"escapes", `"\u2028<&>\"\\"`, true},
	{"zero", `0`, true},
	{"integer", `42`, true},
	{"negative", `-7`, true},
	{"2^53", `9007199254740992`, true},
	{"2^53+1", `9007199254740993`, false},
	{"-2^53-1", `-9007199254740993`, false},
	{"largest int64", `9223372036854775807`, false},
	{"10^21", "1" + strings.Repeat("0", 21), false}, // as a float64 it is exact, and written 1e+21
	{"100 digits", strings.Repeat("123456789", 11) + "1", false},
}

// twiceServer has a tool of which the client hears by the library and by the tool itself.
func twiceServer() *mcp.Server {
	s := newServer()
	s.AddTool(&mcp.Tool{Name: "twice", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: -1})
		heartbeat.Beat(ctx)
		if len(req.Params.Meta) != 1 {
			err = fmt.Errorf("_meta is %v", req.Params.Meta)
		}
		return textResult("done"), err
	})
	mcpsdk.Install(s, nil)
	return s
}

// sameJSON compares two JSON strings or numbers, the latter by their text.
func sameJSON(a, b string) bool {
	var s, u string
	if fmt.Sscanf(a, "%q", &s); strings.HasPrefix(a, `"`) {
		fmt.Sscanf(b, "%q", &u)
		return s == u && strings.HasPrefix(b, `"`)
	}
	return a == b
}

// SPEC 7.1: tokens are echoed exactly as they came; integers above 2^53 need WrapTransport.
func TestTokenEchoed(t *testing.T) {
	for _, tt := range tokens {
		for name, wrap := range map[string]func(mcp.Transport) mcp.Transport{"wrapped": mcpsdk.WrapTransport, "plain": plain} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				c := newRawClient(t, twiceServer(), wrap)
				c.call(1, "twice", tt.token)
				m := c.next()
				for ; m.ID == nil; m = c.next() {
					got := string(m.Params.ProgressToken)
					if want := tt.exact || name == "wrapped"; sameJSON(got, tt.token) != want {
						t.Errorf("echoed as %s", got)
					}
				}
				if strings.Contains(string(m.Result), "isError") {
					t.Errorf("%s", m.Result)
				}
			})
		}
	}
}

// SPEC 7.1: the same over HTTP, through WrapHTTP, batches included.
func TestTokenEchoedOverHTTP(t *testing.T) {
	s := twiceServer()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(mcpsdk.WrapHTTP(h))
	defer server.Close()
	for _, tt := range tokens {
		for _, form := range []string{"%s", "[%s]"} {
			t.Run(tt.name+" "+form, func(t *testing.T) {
				one := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"twice","arguments":{"x":"<>"},"_meta":{"progressToken":%s}}}`, tt.token)
				req, err := http.NewRequest("POST", server.URL, strings.NewReader(fmt.Sprintf(form, one)))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatal(res.Status, err, string(body))
				}
				const mark = `"progressToken":`
				found := strings.Split(string(body), mark)[1:]
				if len(found) == 0 {
					t.Fatalf("no notification in %s", body)
				}
				for _, rest := range found {
					if want := strings.ReplaceAll(tt.token, "<&>", `\u003c\u0026\u003e`); !strings.HasPrefix(rest, want+",") && !strings.HasPrefix(rest, tt.token+",") {
						t.Errorf("echoed as %.40s", rest)
					}
				}
			})
		}
	}
}

// The additions of the wrappers to a request must not be a way to get another's progress.
func TestForgedTokenCopy(t *testing.T) {
	c := newRawClient(t, twiceServer(), plain)
	for i, forged := range []string{`"9007199254740995"`, `"12"`, `9007199254740993`, `"x"`, `null`} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"twice","_meta":{"progressToken":9007199254740992,"io.github.tooldeadline/progressToken":%s}}}`, i+1, forged))
		for m := c.next(); m.ID == nil; m = c.next() {
			if d := cmp.Diff("9007199254740992", string(m.Params.ProgressToken)); d != "" {
				t.Error(d)
			}
		}
	}
}
