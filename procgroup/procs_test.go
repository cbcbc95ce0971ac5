//go:build linux

package procgroup_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroupDirs are the control groups that a process has made.
func cgroupDirs(pid int) (dirs []string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, " - cgroup2 ") {
			continue
		}
		_ = filepath.WalkDir(strings.Fields(line)[4], func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), fmt.Sprintf("tooldeadline-%d-", pid)) {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	return dirs
}

// marked are the live processes, but for this one, that have text in their environment.
func marked(text string) (pids []int) {
	for pid, stat := range processes() {
		env, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if pid != os.Getpid() && bytes.Contains(env, []byte(text)) && !stat.dead() {
			pids = append(pids, pid)
		}
	}
	return pids
}

type stat struct {
	state      string
	ppid, pgrp int
}

func (s stat) dead() bool { return s.state == "Z" || s.state == "X" }

func processes() map[int]stat {
	all := make(map[int]stat)
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, ok := statOf(pid); ok {
				all[pid] = s
			}
		}
	}
	return all
}

func statOf(pid int) (s stat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	s.state = f[0]
	s.ppid, _ = strconv.Atoi(f[1])
	s.pgrp, _ = strconv.Atoi(f[2])
	return s, true
}

// alive reports whether a process is there and not a zombie.
func alive(pid int) bool {
	s, ok := statOf(pid)
	return ok && !s.dead()
}

// undying returns those of a result's survivors that live on. What was killed is one too
// where a busy machine has not let it die by the time at which the call has to return.
func undying(survivors []int) (alives []int) {
	for _, pid := range survivors {
		for begun := time.Now(); alive(pid) && time.Since(begun) < time.Minute; {
			time.Sleep(5 * time.Millisecond)
		}
		if alive(pid) {
			alives = append(alives, pid)
		}
	}
	return alives
}
