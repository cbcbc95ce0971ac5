//go:build unix

package simulate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

var simMutants = flag.String("simulate.mutants", "", "run the simulation on the mutants of testdata/mutants.txt whose names match")

// A mutant is a fault that the simulation finds: lines of a file in place of others.
type mutant struct{ name, file, old, new string }

func mutants(t *testing.T) (all []mutant) {
	data, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(data), "\n# ") {
		name, text, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		file, text, _ := strings.Cut(text, "\n")
		m := mutant{name: name, file: file}
		for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
			switch {
			case strings.HasPrefix(l, "-"):
				m.old += l[1:] + "\n"
			case strings.HasPrefix(l, "+"):
				m.new += l[1:] + "\n"
			default:
				t.Errorf("%s: what is %q?", name, l)
			}
		}
		all = append(all, m)
	}
	return all
}

// A test of the test: each fault of the list is found. By itself it only asks whether the list is up to date.
func TestMutants(t *testing.T) {
	for _, m := range mutants(t) {
		t.Run(m.name, func(t *testing.T) {
			path := filepath.Join("../../..", m.file)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.old); n != 1 {
				t.Fatalf("%s has the lines %d times:\n%s", m.file, n, m.old)
			}
			if *simMutants == "" || !regexp.MustCompile(*simMutants).MatchString(m.name) {
				return
			}
			m.find(t, path, strings.Replace(string(source), m.old, m.new, 1))
		})
	}
}

// find runs the simulation with another source of a file.
func (m mutant) find(t *testing.T, path, source string) {
	dir := t.TempDir()
	changed, list, test := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulate.test")
	if path, err := filepath.Abs(path); err != nil {
		t.Fatal(err)
	} else if text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}}); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", test, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	began := time.Now()
	out, err := exec.Command(test, "-test.run=^(TestSimulation|TestScenarios|TestSimulatedCases)$", "-simulate.first", "-simulate.runs="+fmt.Sprint(max(harness.Runs(0), 30_000))).CombinedOutput()
	took := time.Since(began).Round(10 * time.Millisecond)
	if err == nil {
		t.Errorf("not found in %v", took)
		return
	}
	var found []string
	for _, what := range []string{`seed \d+`, `--- FAIL: Test(Scenarios|SimulatedCases)/\S+`, `(panic|fatal error): .*`} {
		if text := regexp.MustCompile(what).FindString(string(out)); text != "" {
			found = append(found, text)
		}
	}
	t.Logf("found in %v: %s", took, strings.Join(found, ", "))
}
