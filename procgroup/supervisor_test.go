//go:build linux

package procgroup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// These modes are supervisors themselves, for what cannot be tried in the process of the
// tests.

// A report is what such a supervisor says.
type report struct {
	Code      int
	Reason    string
	Survivors []int
	State     bool
	Err       string
	Took      time.Duration
	Threads   [2]int
	Errors    []string
	Leaked    string
	Zombies   int

	Unidentified []int
	Contained    string
	Stdout       string
}

func say(r report) int {
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

func reportOf(r *procgroup.Result, err error, begun time.Time) report {
	rep := report{Took: time.Since(begun), Err: fmt.Sprint(err)}
	if r != nil {
		rep.Code, rep.Reason, rep.Survivors, rep.State = r.ExitCode, r.Reason.Error(), r.Survivors, r.State != nil
		rep.Unidentified, rep.Contained = r.Unidentified, string(r.Contained)
	}
	return rep
}

var containments = map[string]procgroup.Containment{
	"auto": "", "group": procgroup.Group, "helper": procgroup.Helper,
	"cgroup": procgroup.Cgroup, "descendants": procgroup.Descendants,
}

// runModeRun runs a tree with a containment, and is killed in the middle of it.
func runModeRun(a []string) int {
	begun := time.Now()
	r, err := procgroup.Run(context.Background(), command(a[1], a[2:]...), containments[a[0]])
	return say(reportOf(r, err, begun))
}

// runModeNonReaping adopts orphans, as process 1 does, and never reaps one.
func runModeNonReaping(a []string) int {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	begun := time.Now()
	r, err := procgroup.Run(context.Background(), command("zombie"), containments[a[0]])
	rep := reportOf(r, err, begun)
	if r != nil {
		undying(r.Survivors) // what was killed may die late
	}
	for _, s := range processes() {
		if s.ppid == os.Getpid() && s.dead() {
			rep.Zombies++
		}
	}
	return say(rep)
}

// runModeIgnoringChildren has the kernel reap its children, as it does in a program that
// was started with SIGCHLD ignored.
func runModeIgnoringChildren([]string) int {
	signal.Ignore(unix.SIGCHLD)
	begun := time.Now()
	r, err := procgroup.Run(context.Background(), command("tree", "exit", "3"))
	return say(reportOf(r, err, begun))
}

// starve takes all descriptors but some.
func starve(spare int) (free func()) {
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	for i := range spare {
		taken[i].Close()
	}
	return func() {
		for _, f := range taken {
			f.Close()
		}
	}
}

// runModeStarved starts commands with ever fewer descriptors.
func runModeStarved([]string) int {
	rep := report{}
	// Warm up, so that what is opened once and for all is there.
	_, _ = procgroup.Run(context.Background(), sleepCommand("0"))
	left := harness.Leaks()
	const most = 300
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		rep.Errors = append(rep.Errors, err.Error())
	}
	for _, c := range []procgroup.Containment{"", procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		for spare := range 24 {
			free := starve(spare)
			r, err := procgroup.Run(context.Background(), sleepCommand("0"), c)
			free()
			if (r == nil) == (err == nil) {
				rep.Errors = append(rep.Errors, fmt.Sprintf("%v with %d spare descriptors: %v, %v", c, spare, r, err))
			}
			if err == nil {
				rep.Code++
			} else {
				rep.Err = err.Error()
			}
		}
	}
	for begun := time.Now(); left() != "" && time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
	}
	rep.Leaked = left()
	return say(rep)
}
