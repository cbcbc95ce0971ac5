package proctree

import (
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Snapshot implements Tree.Snapshot. Args has only the name of the executable, and State and Wait are empty.
func (t *jobTree) Snapshot(until time.Time) (all []Process, more bool) {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, true
	}
	defer windows.CloseHandle(list)
	members := map[int]bool{t.pid: true}
	if t.job != nil {
		for _, pid := range t.job.pids() {
			members[pid] = true
		}
	}
	b := &budget{until: until}
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err := windows.Process32First(list, &entry); err == nil; err = windows.Process32Next(list, &entry) {
		if !members[int(entry.ProcessID)] {
			continue
		}
		if len(all) == maxListed || !b.next() {
			return all, true
		}
		p := Process{Pid: int(entry.ProcessID), Parent: int(entry.ParentProcessID), Args: []string{windows.UTF16ToString(entry.ExeFile[:])}}
		if h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, entry.ProcessID); err == nil {
			var created, exited, kernel, user windows.Filetime
			if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) == nil {
				p.CPU = fileTimeDuration(fileticks(kernel) + fileticks(user))
				p.Age = max(time.Since(time.Unix(0, created.Nanoseconds())), 0)
			}
			windows.CloseHandle(h)
		}
		all = append(all, p)
	}
	return all, false
}

// Others implements Tree.Others.
func (t *jobTree) Others(until time.Time) (all []Process, more bool) {
	if !t.Alive() {
		return nil, false
	}
	all, more = t.Snapshot(until)
	return slices.DeleteFunc(all, func(p Process) bool { return p.Pid == t.pid }), more
}
