package natstasks_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

// Where JetStream is not there, or may not be used, Open says so and what it wanted.
func TestOpenForbidden(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		jetStream bool
		deny      []string
		want      string
	}{
		{"no JetStream", false, nil, "jetstream not enabled"},
		{"nothing about the account", true, []string{"$JS.API.INFO"}, "asking for the account: "},
		{"no streams to be made", true, []string{"$JS.API.STREAM.CREATE.>"}, "making stream KV_mcp-tasks: "},
		{"no streams to be seen", true, []string{"$JS.API.STREAM.INFO.>"}, "asking for stream KV_mcp-tasks: "},
		{"no leases", true, []string{"$KV.mcp-tasks-leases.>"}, `lease in bucket "mcp-tasks-leases": `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := server.NewServer(&server.Options{
				Host: "127.0.0.1", Port: -1, JetStream: tc.jetStream, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
				Users: []*server.User{{Username: "ann", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: tc.deny, Allow: []string{">"}}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			t.Cleanup(func() { stopServer(s) })
			if !s.ReadyForConnections(slack) {
				t.Fatal("the server is not ready")
			}
			nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("ann", "x"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			store, err := natstasks.Open(ctx, js)
			if err == nil {
				store.Close()
				t.Fatal("it opens")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q in it", err, tc.want)
			}
		})
	}
}
