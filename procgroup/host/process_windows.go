package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A process is a handle of a process. A wait for its end occupies a thread.
type process struct {
	ProcessInfo
	mu       sync.Mutex
	handle   windows.Handle
	stop     windows.Handle // an event that ends a wait
	released bool
	waiting  bool
}

// open returns the process with the id pid. The error is errGone if there is none.
func open(pid int) (*process, error) {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err == windows.ERROR_INVALID_PARAMETER {
		return nil, errGone
	} else if err != nil {
		return nil, fmt.Errorf("host: nothing is watched: OpenProcess: %w", err)
	}
	// A process that has ended can be opened as long as another handle of it is.
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

// close closes the handles, or leaves that to a wait in progress.
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
		return unknown // the code may be a status such as 0xc0000005, which is no exit code
	}
	return ending{nil, int(code)}
}

func (p *process) heir(ending) *process { return nil }

// find returns the host, and the processes between it and this one, from the parent up.
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
			break // another user's, or it has ended
		}
		// The system never changes the number of a parent that has ended, and gives it to another
		// process. That one is younger than its child.
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

// peerOfStdin returns the process that made the pipe, or 0 if the system does not tell.
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

type entry struct {
	parent int
	name   string
}

// running lists all processes by their ids.
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

// created returns when a process began, in units of 100 ns, or 0 if that is not known.
func created(process windows.Handle) int64 {
	var begun, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &begun, &ended, &kernel, &user) != nil {
		return 0
	}
	return int64(begun.HighDateTime)<<32 | int64(begun.LowDateTime)
}

// arguments returns the command line of a process, or nil if it is not known.
func arguments(process windows.Handle) []string {
	// The text follows the structure, in the same buffer. It has at most 32767 characters.
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
