package proctree

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// Meter implements Tree.Meter. It reads the counters of the job object, which include processes that have ended, or
// those of the leader if there is no job.
func (t *jobTree) Meter(io bool) work.Meter {
	var last work.Usage
	return func() (used work.Usage, ok bool) {
		now, ok := t.usage()
		if !ok {
			return used, false
		}
		if io {
			used.IO = now.IO - min(last.IO, now.IO)
		} else {
			used.CPU = max(now.CPU-last.CPU, 0)
		}
		last = now
		return used, true
	}
}

// Total implements Tree.Total. Memory is the peak of the memory that the processes had committed. Without a job, Total
// returns the zero Total.
func (t *jobTree) Total() (total Total) {
	if t.job == nil {
		return total
	}
	if info, err := t.job.account(); err == nil {
		cpu, read, written := fileTimeDuration(info.userTime+info.kernelTime), int64(info.io.ReadTransferCount), int64(info.io.WriteTransferCount)
		total.CPU, total.Read, total.Written = &cpu, &read, &written
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if windows.QueryInformationJobObject(t.job.h, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) == nil {
		peak := int64(info.PeakJobMemoryUsed)
		total.Memory = &peak
	}
	return total
}

// usage returns the processor time and the bytes used since the start, and whether both could be read.
func (t *jobTree) usage() (work.Usage, bool) {
	if t.job != nil {
		info, err := t.job.account()
		return work.Usage{CPU: fileTimeDuration(info.userTime + info.kernelTime), IO: info.io.ReadTransferCount + info.io.WriteTransferCount}, err == nil
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(t.handle, &created, &exited, &kernel, &user) != nil {
		return work.Usage{}, false
	}
	total := fileTimeDuration(fileticks(kernel) + fileticks(user))
	var io windows.IO_COUNTERS
	ok, _, _ := procGetProcessIoCounters.Call(uintptr(t.handle), uintptr(unsafe.Pointer(&io)))
	return work.Usage{CPU: total, IO: io.ReadTransferCount + io.WriteTransferCount}, ok != 0
}

// procGetProcessIoCounters is GetProcessIoCounters, which x/sys lacks.
var procGetProcessIoCounters = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessIoCounters")

func fileticks(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

// fileTimeDuration converts a duration in units of 100 ns.
func fileTimeDuration(n int64) time.Duration { return time.Duration(n) * 100 }
