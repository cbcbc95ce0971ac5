package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A process is a handle to a process. A wait for its end occupies a thread.
type process struct {
	ProcessInfo
	mu       sync.Mutex
	handle   windows.Handle
	stop     windows.Handle // an event with which close ends a wait
	released bool           // close was called
	waiting  bool           // ended is in progress
}

// open returns the process with the id pid. The error is errGone if there is no such process.
func open(pid int) (*process, error) {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err == windows.ERROR_INVALID_PARAMETER {
		return nil, errGone
	} else if err != nil {
		return nil, fmt.Errorf("host: nothing is watched: OpenProcess: %w", err)
	}
	// A process that has ended can still be opened while another handle to it is open.
	if over, err := windows.WaitForSingleObject(handle, 0); err == nil && over == windows.WAIT_OBJECT_0 {
		windows.CloseHandle(handle)
		return nil, errGone
	}
	stop, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		windows.CloseHandle(handle)
		return nil, fmt.Errorf("host: nothing is watched: CreateEvent: %w", err)
	}
	return &process{ProcessInfo: ProcessInfo{Pid: pid}, handle: handle, stop: stop}, nil
}

func (p *process) ended() bool {
	p.mu.Lock()
	p.waiting = !p.released
	waiting := p.waiting
	p.mu.Unlock()
	if !waiting {
		return false
	}
	event, err := windows.WaitForMultipleObjects([]windows.Handle{p.handle, p.stop}, false, windows.INFINITE)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	if p.released {
		p.free()
	}
	return err == nil && event == windows.WAIT_OBJECT_0
}

// close closes the handles. If a wait is in progress, close only wakes it, and the wait closes the handles.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.released:
	case p.waiting:
		_ = windows.SetEvent(p.stop)
	default:
		p.free()
	}
	p.released = true
}

func (p *process) free() {
	windows.CloseHandle(p.handle)
	windows.CloseHandle(p.stop)
}

func (p *process) how(bool) ending {
	p.mu.Lock()
	defer p.mu.Unlock()
	var code uint32
	if p.released || windows.GetExitCodeProcess(p.handle, &code) != nil || code > 1<<31-1 {
		return unknown // the code may be a status such as 0xc0000005 of a crash, which is not an exit code
	}
	return ending{nil, int(code)}
}

func (p *process) heir(ending) *process { return nil }

// find implements the function that watch describes. If named is not 0, it returns no processes between the two.
func find(named int) (*process, []*process, error) {
	all, err := running()
	if err != nil {
		return nil, nil, fmt.Errorf("host: nothing is watched: the list of processes: %w", err)
	}
	if named != 0 {
		p, err := open(named)
		if p != nil {
			p.Name = all[named].name
		}
		return p, nil, err
	}
	peer, err := peerOfStdin()
	if err != nil {
		return nil, nil, err
	}
	var chain []*process
	var programs []program
	begun := created(windows.CurrentProcess())
	for child := os.Getpid(); begun > 0; {
		parent := all[child].parent
		p, err := open(parent)
		if parent == 0 || err != nil {
			if p != nil {
				p.close()
			}
			break // the parent runs as another user, or has ended
		}
		// When a parent ends, its children keep its id as that of their parent, and the system reuses the id. A process
		// that is younger than the child is not its parent.
		at := created(p.handle)
		if at == 0 || at > begun {
			p.close()
			break
		}
		begun, p.Name = at, all[parent].name
		chain = append(chain, p)
		programs = append(programs, program{parent, p.Name, arguments(p.handle)})
		child = parent
	}
	at := nearest(programs, peer)
	for _, p := range chain[at+1:] {
		p.close()
	}
	if at < 0 {
		return nil, nil, errors.New("host: nothing is watched: no ancestor looks like a host")
	}
	return chain[at], chain[:at:at], nil
}

// peerOfStdin returns the id of the process that made the pipe of stdin, or 0 if the system does not show the process.
// The error is not nil if stdin is not a pipe.
func peerOfStdin() (int, error) {
	stdin := windows.Handle(os.Stdin.Fd())
	if kind, err := windows.GetFileType(stdin); err != nil || kind != windows.FILE_TYPE_PIPE {
		return 0, errors.New("host: nothing is watched: stdin is not a pipe")
	}
	var server uint32
	if windows.GetNamedPipeServerProcessId(stdin, &server) != nil {
		return 0, nil
	}
	return int(server), nil
}

// An entry describes a process in the list of running.
type entry struct {
	parent int
	name   string
}

// running returns all processes of the system by their ids.
func running() (map[int]entry, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(snapshot)
	all := make(map[int]entry)
	one := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &one); err == nil; err = windows.Process32Next(snapshot, &one) {
		all[int(one.ProcessID)] = entry{int(one.ParentProcessID), windows.UTF16ToString(one.ExeFile[:])}
	}
	if err == windows.ERROR_NO_MORE_FILES {
		err = nil
	}
	return all, err
}

// created returns the time at which a process began, in units of 100 ns since 1601, or 0 if it is not known.
func created(process windows.Handle) int64 {
	var begun, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &begun, &ended, &kernel, &user) != nil {
		return 0
	}
	return int64(begun.HighDateTime)<<32 | int64(begun.LowDateTime)
}

// arguments returns the command line of a process, or nil if it is not known.
func arguments(process windows.Handle) []string {
	// The buffer gets the structure and then the text, which has at most 32767 characters.
	buf := make([]uint64, (1<<16+64)/8)
	size := uint32(len(buf) * 8)
	if windows.NtQueryInformationProcess(process, windows.ProcessCommandLineInformation, unsafe.Pointer(&buf[0]), size, &size) != nil {
		return nil
	}
	args, err := windows.DecomposeCommandLine((*windows.NTUnicodeString)(unsafe.Pointer(&buf[0])).String())
	if err != nil {
		return nil
	}
	return args
}
