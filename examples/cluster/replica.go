package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const (
	replicaCommand = "replica"
	replicaHeader  = "X-Replica" // header with the replica that answered
	lease          = 3 * time.Second
)

// replicaMain is the process of a replica: replica NAME NATS-URL BUCKET. It ends when its standard
// input ends, and so with the program that started it.
func replicaMain(ctx context.Context, args []string) int {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, stdio.New(os.Stdin))
		stop()
	}()
	if err := serve(ctx, args[0], args[1], args[2]); err != nil {
		fmt.Fprintf(stdio.New(os.Stderr), "replica %s: %v\n", args[0], err)
		return exitFailed
	}
	return 0
}

// serve runs one replica of the server. It prints its address when it is ready.
func serve(ctx context.Context, name, url, bucket string) (err error) {
	// Reconnect for ever and quickly: after the lease, other replicas regard this one as dead.
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(lease/10))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}

	// The store that all replicas share.
	store, err := natstasks.Open(ctx, js, natstasks.Options{Bucket: bucket, Lease: lease})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tasks := &task.Tasks{Store: store}
	defer func() { err = errors.Join(err, tasks.Close()) }()

	server := mcp.NewServer(&mcp.Implementation{Name: "cluster", Version: "v1"}, nil)
	p := &policy.Policy{Tools: map[string]policy.Tool{"render": {Soft: -1}}}
	mcpsdk.Install(server, &mcpsdk.Options{Policy: p, Tasks: tasks})
	mcp.AddTool(server, &mcp.Tool{Name: "render", Description: "renders frames, ten a second"}, render)

	// Any replica may get any request, so there are no sessions.
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	var drain toolcall.Drain
	authenticated := auth.RequireBearerToken(verify, nil)(mcpsdk.WrapHTTP(handler))
	hs := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: drain.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(replicaHeader, name)
			authenticated.ServeHTTP(w, r)
		})),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	return errors.Join(drain.Shutdown(end), hs.Shutdown(end))
}

type frames struct {
	Frames int `json:"frames" jsonschema:"how many"`
}

// render is a slow tool that reports its progress.
func render(ctx context.Context, _ *mcp.CallToolRequest, in frames) (*mcp.CallToolResult, any, error) {
	for i := range in.Frames {
		progress.Report(ctx, progress.Update{Progress: float64(i + 1), Total: float64(in.Frames), Message: "frame"})
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	text := fmt.Sprintf("%d frames", in.Frames)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// verify accepts any token as the name of the user. A real server must verify the token.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}
