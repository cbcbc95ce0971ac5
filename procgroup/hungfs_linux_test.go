package procgroup_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The messages of linux/fuse.h that a file system needs at least.
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseMkdir       = 9
	fuseOpen        = 14
	fuseRead        = 15
	fuseRelease     = 18
	fuseFlush       = 25
	fuseInit        = 26
	fuseCreate      = 35
	fuseInterrupt   = 36
	fuseBatchForget = 42

	fuseRoot = 1
	fuseMade = 3 // a directory that was made
)

// A hungFS is a file system whose server stops answering at the first read of a file that is named "hung", or when a
// file is to be made: an NFS server that is away does the same. Any other file is one that is on the disk. The server is a
// process of its own, so that what hangs can be ended with it, and cannot hold up this process.
type hungFS struct {
	dir   string
	reads chan struct{} // closed when the server has stopped answering
	in    io.Writer
}

func init() { modes["fuse"] = serveHungFS }

// mountHungFS mounts one, or skips the test. It is gone at the end of the test: whatever waits for it goes on then.
func mountHungFS(t *testing.T) *hungFS {
	t.Helper()
	needRoot(t)
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("no /dev/fuse:", err)
	}
	h := &hungFS{dir: t.TempDir(), reads: make(chan struct{})}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("test", h.dir, "fuse.test", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		t.Skip("a FUSE file system cannot be mounted:", err)
	}
	server := command("fuse")
	dev := os.NewFile(uintptr(fd), "/dev/fuse") // not before: poll(2) would never wake
	server.ExtraFiles, server.Stderr = []*os.File{dev}, os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	dev.Close()
	h.in = in
	t.Cleanup(func() {
		if err := unix.Unmount(h.dir, unix.MNT_DETACH|unix.MNT_FORCE); err != nil {
			t.Error(err)
		}
		in.Close() // it ends, and whatever waits for an answer gets an error
		_ = server.Wait()
	})
	go func() {
		if _, err := out.Read(make([]byte, 1)); err == nil {
			close(h.reads)
		}
	}()
	return h
}

// hang has the server stop answering.
func (h *hungFS) hang() {
	_, _ = io.WriteString(h.in, "x")
	<-h.reads
}

// A hungServer is the server, which says so when it has stopped answering.
type hungServer struct {
	dev   *os.File
	hung  atomic.Bool
	files map[uint64]string // what is behind a node; "" is the hung one
}

func serveHungFS([]string) int {
	h := &hungServer{dev: os.NewFile(3, "/dev/fuse"), files: make(map[uint64]string)}
	go h.serve()
	for {
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			return 0
		}
		h.hang()
	}
}

func (h *hungServer) hang() {
	if !h.hung.Swap(true) {
		fmt.Print("x")
	}
}

// path is the path of a file in it; that of an absolute one has the same content.
func (h *hungFS) path(file string) string {
	return filepath.Join(h.dir, strings.ReplaceAll(file, "/", "%"))
}

func (h *hungServer) serve() {
	buf := make([]byte, 1<<20)
	for {
		n, err := h.dev.Read(buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		opcode, unique, node := binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[8:]), binary.NativeEndian.Uint64(buf[16:])
		if opcode == fuseRead && h.files[node] == "" || opcode == fuseCreate {
			h.hang()
		}
		if h.hung.Load() || opcode == fuseForget || opcode == fuseBatchForget || opcode == fuseInterrupt {
			continue
		}
		body, errno := h.answer(opcode, node, buf[40:n])
		out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		out = binary.NativeEndian.AppendUint32(out, uint32(-int32(errno)))
		out = binary.NativeEndian.AppendUint64(out, unique)
		_, _ = h.dev.Write(append(out, body...))
	}
}

func (h *hungServer) answer(opcode uint32, node uint64, in []byte) (body []byte, errno syscall.Errno) {
	put32 := func(all ...uint32) {
		for _, n := range all {
			body = binary.NativeEndian.AppendUint32(body, n)
		}
	}
	put64 := func(all ...uint64) {
		for _, n := range all {
			body = binary.NativeEndian.AppendUint64(body, n)
		}
	}
	attr := func(node uint64) {
		mode, size := uint32(unix.S_IFDIR|0o700), uint64(0)
		if node == fuseRoot {
			mode |= 0o055
		} else if node != fuseMade {
			mode, size = unix.S_IFREG|0o755, 1<<20
			if info, err := os.Stat(h.files[node]); err == nil {
				size = uint64(info.Size())
			}
		}
		put64(node, size, size/512, 0, 0, 0)
		put32(0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
	}
	const directIO, noFlush = 1 << 0, 1 << 5 // without a question at each close, as NFS
	switch opcode {
	case fuseInit:
		put32(7, 31, 0, 0)
		put32(0, 128<<10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	case fuseMkdir:
		h.files[fuseMade] = "made"
		put64(fuseMade, 0, 0, 0)
		put32(0, 0)
		attr(fuseMade)
	case fuseLookup:
		if node == fuseMade {
			return nil, unix.ENOENT
		}
		name := strings.ReplaceAll(string(in[:len(in)-1]), "%", "/")
		if strings.HasPrefix(name, "procgroup-output-") && h.files[fuseMade] != "" {
			put64(fuseMade, 0, 0, 0)
			put32(0, 0)
			attr(fuseMade)
			return body, 0
		}
		node := uint64(2)
		if name != "hung" {
			info, err := os.Stat(name)
			if err != nil {
				return nil, unix.ENOENT
			}
			node = 1<<32 | info.Sys().(*syscall.Stat_t).Ino
			h.files[node] = name
		}
		put64(node, 0, 0, 0) // nothing is to be remembered: each stat is a question
		put32(0, 0)
		attr(node)
	case fuseGetattr:
		put64(0)
		put32(0, 0)
		attr(node)
	case fuseOpen:
		put64(0)
		if h.files[node] == "" {
			put32(directIO|noFlush, 0)
		} else {
			put32(noFlush, 0)
		}
	case fuseRead:
		offset, size := binary.NativeEndian.Uint64(in[8:]), binary.NativeEndian.Uint32(in[16:])
		f, err := os.Open(h.files[node])
		if err != nil {
			return nil, unix.EIO
		}
		defer f.Close()
		body = make([]byte, size)
		n, _ := f.ReadAt(body, int64(offset))
		return body[:n], 0
	case fuseRelease, fuseFlush:
	default:
		return nil, unix.ENOSYS
	}
	return body, 0
}
