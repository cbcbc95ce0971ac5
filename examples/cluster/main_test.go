package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// The test binary also runs as each replica.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == replicaCommand {
		os.Exit(replicaMain(context.Background(), os.Args[2:]))
	}
	harness.Main(m, nil, harness.Options{})
}

// SPEC 13.3: the program prints what README.md shows, apart from the figures.
func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Run("both", testDemos)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func testDemos(t *testing.T) {
	t.Run("a server within", func(t *testing.T) { t.Parallel(); testDemo(t) })
	t.Run("a server of the user", func(t *testing.T) {
		t.Parallel()
		url, stop, err := startNATS()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		testDemo(t, "-server", url)
		nc, err := nats.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		for name := range js.StreamNames(t.Context()).Name() {
			t.Errorf("left there: %s", name)
		}
	})
}

func testDemo(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr")) // a file, since three processes write
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	code := run(ctx, args, &out, errs)
	said, err := os.ReadFile(errs.Name())
	if code != 0 || len(said) > 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, &out, said)
	}
	for _, want := range []string{
		`task 1, of 20 frames, runs on replica (one|two)`,
		`replica (one|two) says of task 1: working, frame \d+ of 20`,
		`replica (one|two) lists 3 tasks`,
		`another user gets tasks/get: taskId ".*": unknown or expired`,
		`replica (one|two) has cancelled task 2: cancelled`,
		`replica (one|two) has the result of task 1: 20 frames`,
		`replica (one|two) is killed \(SIGKILL\), and with it task 3`,
		`replica (one|two) says of task 3: failed, the process that ran the task is gone; last: frame \d+ of 600`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no line %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", &out)
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"x"}, exitUsage, `unexpected argument "x"`},
		{[]string{"-x"}, exitUsage, "flag provided but not defined: -x"},
		{[]string{"-h"}, 0, "-server"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), tc.args, &out, &errs); code != tc.code || !bytes.Contains(errs.Bytes(), []byte(tc.want)) {
			t.Errorf("%q: exit code %d, %s", tc.args, code, &errs)
		}
	}
}
