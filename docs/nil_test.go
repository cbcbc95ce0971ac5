package docs_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// nils are the functions of the root module that cannot do without one of their arguments, called with nil for it.
var nils = map[string]func(context.Context){
	"job.Start":           func(ctx context.Context) { _, _ = new(job.Set).Start(ctx, nil) },
	"lease.Run":           func(ctx context.Context) { _ = lease.Run(ctx, lease.Lease{}, nil) },
	"procgroup.Attach":    func(context.Context) { procgroup.Attach(nil) },
	"procgroup.Lines":     func(context.Context) { procgroup.Lines(nil) },
	"procgroup.Observe":   func(ctx context.Context) { _, _ = procgroup.Observe(ctx, nil, procgroup.Activity{}) },
	"procgroup.Run":       func(ctx context.Context) { _, _ = procgroup.Run(ctx, nil) },
	"procgroup.Start":     func(ctx context.Context) { _, _ = procgroup.Start(ctx, nil) },
	"progress.Await":      func(ctx context.Context) { _, _ = progress.Await[int](ctx, "it", progress.Wait{}, nil) },
	"progress.AwaitReply": func(ctx context.Context) { _, _ = progress.AwaitReply[int](ctx, "it", progress.Wait{}, nil) },
	"request.Do": func(ctx context.Context) {
		_, _ = request.Do[int](ctx, request.New(nil), request.Call{}, nil)
	},
	"request.Retry":                   func(ctx context.Context) { _, _ = request.Retry[int](ctx, request.Backoff{}, nil, nil) },
	"stream.KeepAlive":                func(context.Context) { stream.KeepAlive(nil, 0) },
	"stream.Body":                     func(ctx context.Context) { stream.Body(ctx, nil, 1) },
	"timeout.Do":                      func(ctx context.Context) { _, _ = timeout.Do[int](ctx, nil) },
	"timeout.Run":                     func(ctx context.Context) { _ = timeout.Run(ctx, nil) },
	"timeout.RunWithExecutionTimeout": func(ctx context.Context) { _ = timeout.RunWithExecutionTimeout(ctx, nil) },
	"toolcall.Do":                     func(ctx context.Context) { _, _ = toolcall.Do[int](ctx, nil, toolcall.Call{}, nil) },
}

// A nil where a function, a command, a process, a handler or a body is needed panics with a *timeout.ConfigError at the
// call, and not with a nil pointer when it is used. The functions are listed from the code.
func TestNilPanicsWithConfigError(t *testing.T) {
	for name, call := range nils {
		func() {
			defer func() {
				var bad *timeout.ConfigError
				if err, ok := recover().(error); !ok || !errors.As(err, &bad) || bad.Key == "" {
					t.Errorf("%s: %v, want a *timeout.ConfigError", name, err)
				}
			}()
			call(t.Context())
		}()
	}
	needed := []string{"*exec.Cmd", "*os.Process", "http.Handler", "io.ReadCloser"}
	code := func(file string) bool {
		file = filepath.ToSlash(file)
		public := slices.ContainsFunc([]string{"timeout/", "procgroup/", "progress/", "stream/", "worker/lease/"}, func(room string) bool { return strings.HasPrefix(file, room) })
		nested := slices.ContainsFunc([]string{"mcpsdk/", "mcpgo/", "natstasks/", "adapter/", "tasktest/", "/internal/"}, func(room string) bool { return strings.Contains(file, room) })
		return public && !nested && path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go")
	}
	eachFile(t, code, func(file, text string) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil && f.Name.Name != "Start" {
				continue
			}
			for _, p := range f.Type.Params.List {
				_, calls := p.Type.(*ast.FuncType)
				if name := parsed.Name.Name + "." + f.Name.Name; (calls || slices.Contains(needed, types.ExprString(p.Type))) && nils[name] == nil && !mayBeNil[name] {
					t.Errorf("%s takes a %s, and is not in the list", name, types.ExprString(p.Type))
				}
			}
		}
	})
}

// mayBeNil are the functions for which nil means something.
var mayBeNil = map[string]bool{"timeout.FromEnv": true}
