package harness_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// A simulation stands for a test that makes random runs.
type simulation struct {
	testing.TB
	failed bool
	log    string
}

func (*simulation) Helper()                      {}
func (*simulation) Name() string                 { return "TestIt" }
func (s *simulation) Failed() bool               { return s.failed }
func (s *simulation) Logf(f string, args ...any) { s.log += fmt.Sprintf(f, args...) }

func TestSeeds(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(s *simulation)
		want []uint64
		log  string
	}{
		{"all pass", nil, []uint64{1, 2, 3}, "3 runs, the last with the seed 3, in "},
		{"one fails", func(s *simulation) { s.failed = true }, []uint64{1, 2}, "again: go test -run='^TestIt$' -simulate.seed=2 -simulate.runs=1"},
		{"a bubble ends the test", func(s *simulation) { s.failed = true; runtime.Goexit() }, []uint64{1, 2}, "again: go test -run='^TestIt$' -simulate.seed=2 -simulate.runs=1"},
		{"a bubble panics", func(*simulation) { panic("deadlock") }, []uint64{1, 2}, "again: go test -run='^TestIt$' -simulate.seed=2 -simulate.runs=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, got, done := new(simulation), []uint64(nil), make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				for seed := range harness.Seeds(s, 3) {
					if got = append(got, seed); seed == 2 && c.fail != nil {
						c.fail(s)
					}
				}
			}()
			if <-done; !slices.Equal(got, c.want) || !strings.HasPrefix(s.log, c.log) {
				t.Errorf("runs %v, %q, want %v, %q", got, s.log, c.want, c.log)
			}
		})
	}
}
