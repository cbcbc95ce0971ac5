package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// runs hashes five files in a workflow of the SDK's test environment.
func runs(t *testing.T, h *hasher) (r report) {
	t.Helper()
	dir := t.TempDir()
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i)), []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logger := slog.New(slog.DiscardHandler)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(logger))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	env.SetWorkerOptions(options(3*time.Second, logger))
	env.RegisterActivity(h)
	env.ExecuteWorkflow(hashTree, dir)
	if err := env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func names(r report) (all string) {
	for _, line := range r.Lines {
		_, name, _ := strings.Cut(line, "  ")
		all += name[len(name)-1:]
	}
	return all
}

// SPEC 13.1.
func TestHashTree(t *testing.T) {
	for _, tt := range []struct {
		name    string
		hangs   int
		want    string
		stopped string
		files   int64
	}{
		{"nothing hangs", 0, "01234", "", 5},
		{"an attempt hangs, and no file is hashed twice", 1, "01234", "", 5},
		{"all attempts hang", 3, "012", "idle", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hasher{hang: "file3", hangs: tt.hangs}
				r := runs(t, h)
				if got := names(r); got != tt.want || r.Stopped != tt.stopped || h.files.Load() != tt.files {
					t.Errorf("files %s, %d hashed, stopped: %s", got, h.files.Load(), r.Stopped)
				}
			})
		})
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-idle", "0s", "."}, {"-idle", "soon", "."}} {
		if err := run(context.Background(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestNoServer(t *testing.T) {
	err := run(context.Background(), []string{"-address", "127.0.0.1:1", "."}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "temporal server start-dev") {
		t.Error(err)
	}
}
