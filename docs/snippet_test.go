package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goFence   = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	pkgName   = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	topReturn = regexp.MustCompile(`(?m)^return [^\n]`)
)

// A snippetModule compiles the snippets that use one of its packages.
type snippetModule struct {
	dir     string
	pkgs    []string          // the last module has none, and the snippets that no other has
	imports map[string]string // path by the name that snippets use, beside snippetImports
	stubs   string            // declarations that snippets take for granted
}

const core = "github.com/tooldeadline/tooldeadline/"

var snippetImports = map[string]string{
	"context": "context", "errgroup": "golang.org/x/sync/errgroup", "errors": "errors", "exec": "os/exec", "fmt": "fmt", "http": "net/http", "log": "log", "slog": "log/slog", "sql": "database/sql",
	"os": "os", "signal": "os/signal", "syscall": "syscall", "synctest": "testing/synctest", "testing": "testing", "time": "time",
	"heartbeat": core + "heartbeat", "notify": core + "heartbeat/notify", "lease": core + "worker/lease", "host": core + "procgroup/host", "procgroup": core + "procgroup", "progress": core + "progress",
	"policy": core + "timeout/policy", "hosts": core + "progress/hosts", "request": core + "progress/request", "stream": core + "stream", "timeout": core + "timeout", "toolcall": core + "progress/toolcall",
	"mcpgo": core + "progress/mcpgo", "mcpsdk": core + "progress/mcpsdk",
}

var snippetModules = []snippetModule{
	{
		dir: "progress/mcpsdk", pkgs: []string{"mcpsdk", "mcp"},
		imports: map[string]string{"mcp": "github.com/modelcontextprotocol/go-sdk/mcp", "task": core + "progress/task"},
		stubs:   "var session *mcp.ClientSession\nvar server *mcp.Server\n",
	},
	{
		dir: "progress/mcpgo", pkgs: []string{"mcpgo"},
		imports: map[string]string{
			"client":    "github.com/mark3labs/mcp-go/client",
			"task":      core + "progress/task",
			"server":    "github.com/mark3labs/mcp-go/server",
			"transport": "github.com/mark3labs/mcp-go/client/transport",
		},
		stubs: "var connection transport.Interface\n",
	},
	{
		dir: "oteltimeout", pkgs: []string{"oteltimeout", "otelhttp"},
		imports: map[string]string{
			"httptimeout": core + "timeout/httptimeout",
			"otelhttp":    "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
			"oteltimeout": core + "oteltimeout",
		},
		stubs: "var params struct{ Meta map[string]any }\nvar mux http.ServeMux\nvar limits timeout.Config\nvar addr string\nfunc serve(context.Context) error { return nil }\n",
	},
	{
		dir: "progress/task/natstasks", pkgs: []string{"natstasks"},
		imports: map[string]string{
			"jetstream": "github.com/nats-io/nats.go/jetstream",
			"task":      core + "progress/task",
			"natstasks": core + "progress/task/natstasks",
		},
		stubs: "var js jetstream.JetStream\nfunc serve(context.Context, *task.Tasks) error { return nil }\n",
	},
	{
		dir: "worker/natsworker", pkgs: []string{"natsworker"},
		imports: map[string]string{
			"natsworker": core + "worker/natsworker",
			"jetstream":  "github.com/nats-io/nats.go/jetstream",
			"nats":       "github.com/nats-io/nats.go",
		},
		stubs: `
var (
	consumer jetstream.Consumer
	results  jetstream.KeyValue
	nc       *nats.Conn
)

func compress(context.Context, string) ([]byte, error) { return nil, nil }
`,
	},
	{
		dir: "examples/queues", pkgs: []string{"river", "asynq", "message"},
		imports: map[string]string{
			"asynq":     "github.com/hibiken/asynq",
			"json":      "encoding/json",
			"message":   "github.com/ThreeDotsLabs/watermill/message",
			"pgx":       "github.com/jackc/pgx/v5",
			"redis":     "github.com/redis/go-redis/v9",
			"river":     "github.com/riverqueue/river",
			"rivertype": "github.com/riverqueue/river/rivertype",
		},
	},
	{
		dir: "worker/temporalworker", pkgs: []string{"temporalworker"},
		imports: map[string]string{
			"temporalworker": core + "worker/temporalworker", "client": "go.temporal.io/sdk/client",
			"interceptor": "go.temporal.io/sdk/interceptor", "worker": "go.temporal.io/sdk/worker",
		},
		stubs: "var c client.Client\nfunc index(context.Context) error { return nil }\n",
	},
	{
		dir:     ".",
		imports: map[string]string{"httptimeout": core + "timeout/httptimeout", "job": core + "procgroup/job", "regexp": "regexp", "task": core + "progress/task"},
		stubs: `
var (
	export    http.Handler
	files     []string
	requested time.Duration
	lastCall  time.Time
	password  string
	transport struct{ HTTPClient *http.Client }
)

func index(context.Context, string) error                         { return nil }
func analyse(context.Context) (string, error)                     { return "", nil }
func explore(context.Context) error                               { return nil }
func observe(tool string, code int, elapsed, gap time.Duration)   {}
`,
	},
}

// The Go snippets of the README and of docs compile, as they stand, in the module whose
// package they use. (Go caches a test by the files that it opens itself, not by those
// that the go command opens for it; TestCitedRulesExist opens them all.)
func TestSnippets(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := map[string]map[string]string{} // by directory of the module, then by name
	n := 0
	for _, file := range append(docs, "README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range goFence.FindAllSubmatchIndex(text, -1) {
			code := string(text[at[2]:at[3]])
			m := moduleOf(code)
			if snippets[m.dir] == nil {
				snippets[m.dir] = map[string]string{}
			}
			n++
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			snippets[m.dir][fmt.Sprintf("snippet%d", n)] = m.program(code, file, line)
		}
	}
	for _, m := range snippetModules {
		t.Run(m.dir, func(t *testing.T) {
			if len(snippets[m.dir]) == 0 {
				t.Fatal("no snippet found")
			}
			if _, err := os.Stat(m.dir); errors.Is(err, fs.ErrNotExist) {
				t.Skip("a module that was downloaded is without those below it: this needs a clone")
			}
			buildSnippets(t, m.dir, snippets[m.dir])
		})
	}
}

// buildSnippets compiles each program as a package of the module in dir.
func buildSnippets(t *testing.T, dir string, programs map[string]string) {
	t.Helper()
	here, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The files lie in a temporary directory; an overlay shows them to the go command as
	// packages of the module.
	scratch := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(scratch, "overlay.json")}
	for name, program := range programs {
		file := filepath.Join(scratch, name+".go")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(here, "internal", name, "snippet.go")] = file
		args = append(args, "./internal/"+name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "overlay.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = here
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

func moduleOf(code string) snippetModule {
	for _, m := range snippetModules {
		if m.pkgs == nil || slices.ContainsFunc(packagesIn(code), func(p string) bool { return slices.Contains(m.pkgs, p) }) {
			return m
		}
	}
	panic("the last module has them all")
}

// packagesIn returns the names before a dot and a capital letter.
func packagesIn(code string) (names []string) {
	for _, m := range pkgName.FindAllStringSubmatch(code, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// program makes a snippet a file that compiles on its own. The compiler's errors name the
// place in the document.
func (m snippetModule) program(snippet, file string, line int) string {
	here := fmt.Sprintf("//line %s:%d\n", file, line)
	body := here + snippet
	if !strings.HasPrefix(snippet, "func ") {
		returns := ""
		if topReturn.MatchString(snippet) {
			returns = " error"
		}
		body = fmt.Sprintf("func snippet(ctx context.Context)%s {\n%s%s}\n", returns, here, snippet)
	}
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, name := range packagesIn(body + m.stubs) {
		path := m.imports[name]
		if path == "" {
			path = snippetImports[name]
		}
		if path != "" {
			fmt.Fprintf(&b, "import %s %q\n", name, path)
		}
	}
	return b.String() + body + "\n//line stubs.go:1\n" + m.stubs
}
