package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calllog"
)

// SPEC 7.7: what is stopped is answered with what is known, and the server goes on.
func TestLimits(t *testing.T) {
	const (
		idle  = "No progress for 1s (idle timeout). The server has shown no sign of life."
		total = "Tool exceeded wall-clock limit of 1s."
	)
	for _, tc := range []struct {
		name, tool, args string
		flags            []string
		text, outcome    string
	}{
		{"of one tool", "hang", `{}`, []string{"-tool", "hang:total=1s"}, total, "total 124"},
		{"of another tool", "sleep", `{"ms":1500}`, []string{"-tool", "hang:total=1s"}, "done", ""},
		{"with what there is", "half", `{}`, []string{"-idle", "1s"}, idle + "|half of it", "idle 124"},
		{"stderr", "stderr", `{"ms":11000}`, []string{"-idle", "9s"}, "done", ""},
		{"stderr that does not count", "stderr", `{"ms":60000}`, []string{"-idle", "1s", "-alive", "log,progress"}, idle, "idle 124"},
		{"heartbeats", "notify", `{"ms":11000}`, []string{"-idle", "9s", "-alive", "notify"}, "done", ""},
		{"heartbeats that do not count", "notify", `{"ms":60000}`, []string{"-idle", "1s", "-alive", "stderr"}, idle, "idle 124"},
		{"work", "burn", `{"ms":14000}`, []string{"-idle", "9s"}, "done", ""},
		{"work that does not count", "burn", `{"ms":60000}`, []string{"-idle", "1s", "-alive", "stderr"}, idle, "idle 124"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			if tc.name == "work" && runtime.GOOS != "linux" {
				t.Skip("work is not seen there")
			}
			h := connect(t, tc.flags...)
			w := h.call("1", tc.tool, tc.args)
			// The newest that was said of it follows in a line of its own.
			said, _, _ := strings.Cut(w.text(), "\nlast: ")
			if said != tc.text || w.outcome() != tc.outcome || w.Result.IsError != (tc.outcome != "") {
				t.Error(w.raw)
			}
			if again := h.call("2", "echo", `{"text":"there"}`); again.text() != "there" {
				t.Error(again.raw)
			}
			if strings.Count(h.stderr(), "evil: started") != 1 {
				t.Error("the server was started again")
			}
		})
	}
}

// Keep-alives say that the server is working, and how much.
func TestKeepAliveOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("work is not seen there")
		}
		h := connect(t, "-keep-alive", "2s", "-idle", "20s")
		h.await(h.start("1", "burn", `{"ms":10000}`, `1`), "burn")
		// One is enough: on a busy machine the server may get less than 1 % of a core between two.
		said := h.got(`"progressToken":1`)
		if !slices.ContainsFunc(said, regexp.MustCompile(`"working, \d+ % of a core, silent for \d+ s"`).MatchString) {
			t.Errorf("%q", said)
		}
	})
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "calls")
		h := connect(t, "-log", name, "-idle", "10s", "-total", "1m")
		h.call("1", "echo", `{"text":"x"}`)
		h.call(`"two"`, "fail", `{}`)
		h.call("3", "hang", `{}`)
		h.start("4", "hang", `{}`, "")
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
		eventually(t, "four lines", func() bool { return strings.Count(read(t, name), "\n") == 4 })
		h.call("5", "exit", `{}`)
		eventually(t, "five lines", func() bool { return strings.Count(read(t, name), "\n") == 5 })
		var got [][]any
		lines := bufio.NewScanner(strings.NewReader(read(t, name)))
		for lines.Scan() {
			var l calllog.Line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil || time.Since(l.Time) > generous || l.Total != 60000 || l.Idle != 10000 {
				t.Errorf("%v: %s", err, lines.Text())
			}
			got = append(got, []any{l.Tool, string(l.ID), l.Outcome, l.ExitCode, l.Bytes > 0, l.Error != "", l.Tree != "" || runtime.GOOS != "linux"})
		}
		want := [][]any{
			{"echo", "1", "ok", 0, true, false, runtime.GOOS != "linux"},
			{"fail", `"two"`, "failed", 1, true, false, runtime.GOOS != "linux"},
			{"hang", "3", "idle", 124, false, true, true},
			{"hang", "4", "aborted", 130, false, true, runtime.GOOS != "linux"},
			{"exit", "5", "lost", 1, false, true, runtime.GOOS != "linux"},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
