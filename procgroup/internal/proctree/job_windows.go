package proctree

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// killedCode is the exit code of a process that this package kills. os.Process.Kill uses the same code.
const killedCode = 1

// A job is a job object. Its processes, and the processes that they start, cannot leave it. No process inherits the
// handle, so the system closes it when the host ends, however that happens, and then kills the processes in the job.
type job struct{ h windows.Handle }

func newJob() (*job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	j := &job{h}
	if err := j.limit(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// limit sets the limit flags of the job. No process can leave the job unless a flag allows it.
func (j *job) limit(flags uint32) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = flags
	_, err := windows.SetInformationJobObject(j.h, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return os.NewSyscallError("SetInformationJobObject", err)
}

func (j *job) assign(process windows.Handle) error {
	return os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(j.h, process))
}

// An accounting has the layout of JOBOBJECT_BASIC_AND_IO_ACCOUNTING_INFORMATION.
type accounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64 // in units of 100 ns
	pageFaults, total, active, terminated                  uint32
	io                                                     windows.IO_COUNTERS
}

// account returns the resources used by the job's processes, including those that have ended.
func (j *job) account() (info accounting, err error) {
	err = windows.QueryInformationJobObject(j.h, windows.JobObjectBasicAndIoAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return info, os.NewSyscallError("QueryInformationJobObject", err)
}

// active returns the number of processes in the job that have not ended.
func (j *job) active() (int, error) {
	info, err := j.account()
	return int(info.active), err
}

// pids lists the processes in the job, at most 1000 of them, which is enough for a report. It returns nil if the system
// does not list them.
func (j *job) pids() (pids []int) {
	// info has the layout of JOBOBJECT_BASIC_PROCESS_ID_LIST.
	var info struct {
		assigned, listed uint32
		ids              [1000]uintptr
	}
	err := windows.QueryInformationJobObject(j.h, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	for _, id := range info.ids[:min(int(info.listed), len(info.ids))] {
		pids = append(pids, int(id))
	}
	return pids
}

// kill kills the processes in the job, again and again, until none is left or the deadline has passed. It returns the
// processes that are left, as far as pids lists them.
func (j *job) kill(deadline time.Time) (survivors []int) {
	for b := patient.Backoff(0); ; {
		_ = windows.TerminateJobObject(j.h, killedCode)
		if n, err := j.active(); err == nil && n == 0 {
			return nil
		}
		if !b.Sleep(deadline) {
			return j.pids()
		}
	}
}

// release lets the processes outlive the job's handle. If the system refuses that, the handle stays open as long as the
// host lives, because closing it would kill the processes.
func (j *job) release() {
	if j.limit(0) != nil {
		j.h = 0
	}
}

func (j *job) close() {
	if j.h != 0 {
		windows.CloseHandle(j.h)
		j.h = 0
	}
}
