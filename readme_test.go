package tooldeadline_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stubs are what the README's snippets take for granted.
const stubs = `
var (
	files     []string
	requested time.Duration
)

func index(context.Context, string) error             { return nil }
func analyse(context.Context) (string, error)         { return "", nil }
func explore(context.Context) error                   { return nil }
`

var (
	fence     = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	pkgName   = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	topReturn = regexp.MustCompile(`(?m)^return `)
)

var imports = map[string]string{
	"context": "context", "errors": "errors", "log": "log", "os": "os", "testing": "testing", "time": "time",
	"timeout":   "github.com/tooldeadline/tooldeadline/timeout",
	"heartbeat": "github.com/tooldeadline/tooldeadline/heartbeat",
	"procgroup": "github.com/tooldeadline/tooldeadline/procgroup",
	"exec":      "os/exec",
	"fmt":       "fmt",
	"synctest":  "testing/synctest",
}

// program makes a snippet a file that compiles on its own.
func program(snippet string) string {
	body := snippet
	if !strings.HasPrefix(snippet, "func ") {
		returns := ""
		if topReturn.MatchString(snippet) {
			returns = " error"
		}
		body = fmt.Sprintf("func snippet(ctx context.Context)%s {\n%s}\n", returns, snippet)
	}
	var used []string
	for _, m := range pkgName.FindAllStringSubmatch(body+stubs, -1) {
		if path := imports[m[1]]; path != "" && !slices.Contains(used, path) {
			used = append(used, path)
		}
	}
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, path := range used {
		fmt.Fprintf(&b, "import %q\n", path)
	}
	return b.String() + body + stubs
}

// The README's snippets compile, as they stand.
func TestReadmeSnippets(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	snippets := fence.FindAllSubmatch(readme, -1)
	if len(snippets) < 5 {
		t.Fatalf("only %d snippets found", len(snippets))
	}
	// The files lie in a temporary directory; an overlay shows them to the go command as
	// packages of this module.
	dir := t.TempDir()
	replace := map[string]string{}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	for i, s := range snippets {
		name := fmt.Sprintf("snippet%d", i+1)
		file := filepath.Join(dir, name+".go")
		if err := os.WriteFile(file, []byte(program(string(s[1]))), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "internal", name, "snippet.go")] = file
		args = append(args, "./internal/"+name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}
