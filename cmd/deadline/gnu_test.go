//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

var record = flag.Bool("record", false, "run GNU timeout, which GNU_TIMEOUT names or the system has, and write testdata/gnu.json")

// A recording is what GNU timeout does, from testdata/gnu.json: go test -record -run GNU .
type recording struct {
	Version string
	Results map[string]result // by the scripts of GNU's
	Shown   map[string]result // on a terminal, by the names of tests
	mu      sync.Mutex
	dir     string // of GNU timeout, if it is recorded
}

var gnu = sync.OnceValue(func() *recording {
	const file = "testdata/gnu.json"
	r := new(recording)
	if *record {
		*r = recording{Results: make(map[string]result), Shown: make(map[string]result)}
		path := cmp.Or(os.Getenv("GNU_TIMEOUT"), "/usr/bin/timeout")
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			panic(err)
		}
		r.Version, _, _ = strings.Cut(string(out), "\n")
		if r.dir, err = os.MkdirTemp("", "gnu"); err == nil {
			err = os.Symlink(path, filepath.Join(r.dir, "timeout"))
		}
		if err != nil {
			panic(err)
		}
		atEnd = append(atEnd, func() {
			text, err := json.MarshalIndent(r, "", "\t")
			if err == nil {
				err = os.WriteFile(file, append(text, '\n'), 0o644)
			}
			if err != nil {
				panic(err)
			}
			os.RemoveAll(r.dir)
		})
		return r
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		panic(err)
	}
	return r
})

// of returns what GNU timeout does with a script.
func (r *recording) of(t *testing.T, script string, env ...string) result {
	t.Helper()
	script = either(script, 0)
	if r.dir != "" {
		got := runScript(t, r.dir, script, env...)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Results[strings.Join(append(env, script), " ")] = got
		return got
	}
	got, known := r.Results[strings.Join(append(env, script), " ")]
	if !known {
		t.Fatalf("not recorded: %s", script)
	}
	return got
}

// A script has {this|that} where GNU timeout is waited for and ours is not.
var choice = regexp.MustCompile(`\{([^{}|]*)\|([^{}]*)\}`)

func either(script string, which int) string {
	return choice.ReplaceAllString(script, fmt.Sprintf("${%d}", which+1))
}

// A gnuCase is a script that does the same with GNU timeout and with ours.
type gnuCase struct {
	script string
	env    []string
	// ownText says that the output is the program's own, so that only how it ends and what
	// it says on the standard error is compared.
	ownText bool
	// cgo says that ours can do it only if built with cgo, see inherited_cgo.go.
	cgo bool
}

// An ignored has the signals that scripts of this test find ignored, as bits: those with which the test was started.
type ignored uint64

var ignoredLine = regexp.MustCompile(`(SigIgn:\s+)([0-9a-f]{16})`)

func ignoredAtStart(t *testing.T) ignored {
	t.Helper()
	m := ignoredLine.FindStringSubmatch(runScript(t, "", "grep SigIgn /proc/self/status").Stdout)
	if m == nil {
		t.Fatal("the system does not say which signals are ignored")
	}
	return ignored(bitsOf(m[2]))
}

// forget takes these signals out of what a script has printed, because GNU's was recorded where none was ignored.
func (i ignored) forget(text string) string {
	return ignoredLine.ReplaceAllStringFunc(text, func(s string) string {
		m := ignoredLine.FindStringSubmatch(s)
		return m[1] + fmt.Sprintf("%016x", bitsOf(m[2])&^uint64(i))
	})
}

func bitsOf(hex string) uint64 {
	bits, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		panic(err) // it has matched
	}
	return bits
}

// TestLikeGNU proves SPEC 5 and what the program claims: seen from outside, it is GNU
// timeout.
func TestLikeGNU(t *testing.T) {
	t.Parallel()
	theirs, our, started := gnu(), ours(t), ignoredAtStart(t)
	for _, cases := range [][]gnuCase{durationCases, optionCases, startCases, endCases, signalCases, inheritCases} {
		for _, c := range cases {
			t.Run(c.script, func(t *testing.T) {
				t.Parallel()
				if c.cgo && !knowsInherited {
					t.Skip("needs cgo")
				}
				want, got := theirs.of(t, c.script, c.env...), runScript(t, our, either(c.script, 1), c.env...)
				if c.ownText {
					want.Stdout, got.Stdout = "", ""
				}
				want.Stdout, got.Stdout = started.forget(want.Stdout), started.forget(got.Stdout)
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("-GNU +ours:\n%s", diff)
				}
			})
		}
	}
}

// TestLikeNewerGNU: the same for what GNU timeout has learnt since the version that is recorded.
func TestLikeNewerGNU(t *testing.T) {
	t.Parallel()
	our := ours(t)
	for _, c := range newerCases {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			if c.cgo && !knowsInherited {
				t.Skip("needs cgo")
			}
			if got := runScript(t, our, either(c.script, 1)); got != c.want {
				t.Errorf("\ngot  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestDurationsLikeGNU: parseDuration accepts the durations that GNU timeout accepts, and refuses all others with the
// same message.
func TestDurationsLikeGNU(t *testing.T) {
	t.Setenv("LC_ALL", "C") // as runScript has it
	all := []string{
		"10", "1d", "0", "0s", "0d", "5.", ".5m", "1e1", "1E1", "0x10", "0X10", "0x1p4", "0x.8p4", "0xah",
		"inf", "INF", "Infinity", "infd", " 1", "+5", "1e5000", "0e-5000", "0x0p-5000", "9999999999999d", "1e300d",
		"18446744073709551616", "9223372036854775807", "9223372037",

		"nan", "1 ", "0x", "1e", "1e+", "5S", "1ss", "1ms", "", "1_0", "0x1_0", "s", "1,5", "++1", "+", ".", "- 1",
		"infx", "5 s", "-", "١", "1\n", "0x1p", "--1", "-1", "-0",
	}
	var script, want strings.Builder
	for i, d := range all {
		fmt.Fprintf(&script, "timeout -- '%s' true 2>&1; c=$?; [ $c = 124 ] && c=0; echo duration %d, exit code $c\n", d, i) // one that is too short for the start is accepted, too
		code := 0
		if _, err := parseDuration(d); err != nil {
			code = 125
			fmt.Fprintf(&want, "timeout: %v\nTry 'timeout --help' for more information.\n", err)
		}
		fmt.Fprintf(&want, "duration %d, exit code %d\n", i, code)
	}
	if diff := gocmp.Diff(strings.Split(gnu().of(t, script.String()).Stdout, "\n"), strings.Split(want.String(), "\n")); diff != "" {
		t.Errorf("-GNU +ours:\n%s", diff)
	}
}

// A duration is rounded up to a nanosecond, after a multiplication in floating point, and cut at the longest.
func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0": 0, "10": 10 * time.Second, ".5m": 30 * time.Second, "1d": 24 * time.Hour, "0x.8p4": 8 * time.Second,
		"1e-9": 1, "1.1e-9": 2, "1e-10": 1, "1e-320": 1, "1.5": 1500 * time.Millisecond,
		"9223372036": 9223372036 * time.Second, "9223372037": math.MaxInt64, "inf": math.MaxInt64,
	} {
		if got, err := parseDuration(s); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", s, got, err, want)
		}
	}
}

var durationCases = []gnuCase{
	{script: "exec timeout -- 6e1 true"},
	{script: "exec timeout -- '1\n' true"},
	{script: "exec timeout -- -1 true"},
	{script: "exec timeout -1 true"},
	{script: "exec timeout 1e-10 sleep 10"},
	{script: "exec timeout 1e-320 sleep 10"},
	{script: "exec timeout .1 sleep 10"},
	{script: "exec timeout 0.002m sleep 10"},
	{script: "exec timeout 0x.2p0 sleep 10"},
	{script: "exec timeout 0 sleep .2"},
	{script: "exec timeout -k x 1 true"},
	{script: "exec timeout -k inf 60 true"},
	{script: "exec timeout -k 0 {10|.1} sh -c 'trap \"\" TERM; {sleep 16|until [ -e sent ]; do sleep .01; done}; echo done'"},
}

var optionCases = []gnuCase{
	{script: "exec timeout"},
	{script: "exec timeout 5"},
	{script: "exec timeout -v 5"},
	{script: "exec timeout --help", ownText: true},
	{script: "exec timeout --hel --nonsense", ownText: true},
	{script: "exec timeout --version", ownText: true},
	{script: "exec timeout --nonsense --help"},
	{script: "exec timeout --help >/dev/full"},
	{script: "exec timeout --help >&-", cgo: true},
	{script: "exec timeout --nonsense=1 60 true"},
	{script: "exec timeout --ver"},
	{script: "exec timeout --v=1"},
	{script: "exec timeout --verbose=1 60 true"},
	{script: "exec timeout --foreground=yes 60 true"},
	{script: "exec timeout -x 60 true"},
	{script: "exec timeout -h"},
	{script: "exec timeout -vx 60 true"},
	{script: "exec timeout -5 true"},
	{script: "exec timeout -k"},
	{script: "exec timeout -vk"},
	{script: "exec timeout --kill-after"},
	{script: "exec timeout --kill"},
	{script: "exec timeout --kill= 60 true"},
	{script: "exec timeout -k1 60 true"},
	{script: "exec timeout -vk1 60 true"},
	{script: "exec timeout --kill-after 1 60 true"},
	{script: "exec timeout --kil=1 --pres --f --s TERM 60 true"},
	{script: "exec timeout -k 1 -- 60 true"},
	{script: "exec timeout 60 -v true"},
	{script: "exec timeout 60 -- true"},
	{script: "exec timeout 60 echo -v --help -- -k 1"},
	{script: "exec timeout -k 1 -k x 60 true"},
	{script: "exec timeout -s foo 60 true"},
	{script: "exec timeout -s '' 60 true"},
	{script: "exec timeout -s 200 60 true"},
	{script: "exec timeout -s 65 60 true"},
	{script: "exec timeout -s 99999999999 60 true"},
	{script: "exec timeout -s 265 60 true"},
	{script: "exec timeout -s 9x 60 true"},
	{script: "exec timeout -s -9 60 true"},
	{script: "exec timeout -s RTMIN-1 60 true"},
	{script: "exec timeout -s RTMIN+ 60 true"},
	{script: "exec timeout -s sigSIGTERM 60 true"},
	{script: "exec timeout -s EMT 60 true"},
	{script: "mkdir bin; ln -s $(command -v timeout) bin; exec bin/timeout --nonsense"},
	{script: "ln -s $(command -v timeout) .; exec ./timeout --ver"},
	{script: "ln -s $(command -v timeout) timeout; exec ./timeout -v .1 sleep 10"},
}
