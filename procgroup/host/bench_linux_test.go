package host_test

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/host"
)

// How long a server needs to find its host.
func BenchmarkContext(b *testing.B) {
	stdin, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		b.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := unix.Dup2(int(read.Fd()), 0); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = unix.Dup2(stdin, 0)
		unix.Close(stdin)
		read.Close()
		write.Close()
	})
	for b.Loop() {
		_, stop := host.Context(context.Background())
		stop()
	}
}

// How long after its host was killed a server acts, while another process holds stdin open.
func BenchmarkHostKilled(b *testing.B) {
	var all, most time.Duration
	for b.Loop() {
		s := newStage(b)
		s.run(line(theHost(sibling), theServer)...)
		s.proc("sibling")
		server := s.proc("server")
		server.says("watching ")
		killed := time.Now()
		s.proc("host").kill()
		server.says(endsWithHost)
		took := time.Since(killed)
		all += took
		most = max(most, took)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(all.Microseconds())/float64(b.N)/1000, "ms/end")
	b.ReportMetric(float64(most.Microseconds())/1000, "ms/worst")
}
