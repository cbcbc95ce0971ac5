package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/hosts"
)

// The first table of hosts.md has the hosts of package hosts: their limits, whether progress renews them, and a total that
// is below each limit by the margin. SPEC 18.5.
func TestHosts(t *testing.T) {
	text, err := os.ReadFile("docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name               string
		Limit, Idle, Total time.Duration
		Renewed            bool
	}
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(text, "min", "m"), " ", ""))
		if err != nil {
			t.Error(err)
		}
		return d
	}
	first := regexp.MustCompile(`^(about )?(\d+ (s|min))`)
	idle := regexp.MustCompile(`(\d+ (s|min)) (idle|stdio)`)
	total := regexp.MustCompile(`a total of (\d+ s)`)
	var got, want []row
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Host ") {
			continue
		}
		name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(cells[0])), " ", "-")
		if name == "vs-code" {
			name = "vscode"
		}
		r := row{Name: name, Renewed: strings.HasPrefix(cells[2], " yes")}
		if m := first.FindStringSubmatch(strings.TrimSpace(cells[1])); m != nil {
			r.Limit = duration(m[2])
		}
		if m := idle.FindStringSubmatch(cells[1]); m != nil {
			r.Idle = duration(m[1])
		}
		if m := total.FindStringSubmatch(cells[3]); m != nil {
			r.Total = duration(m[1])
		}
		got = append(got, r)
	}
	for _, h := range hosts.All() {
		within, _ := h.Budget().Answer(true)
		want = append(want, row{Name: h.Name, Limit: h.Limit, Idle: h.Idle, Renewed: h.Renewed, Total: within.Left})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("package hosts (-), hosts.md (+):\n%s", d)
	}
}
