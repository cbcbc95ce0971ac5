package stream_test

import (
	"io"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// BenchmarkOneRead measures what the limit adds to a Read that costs nothing.
func BenchmarkOneRead(b *testing.B) {
	body := stream.Body(b.Context(), io.NopCloser(zeros{}), time.Minute)
	defer body.Close()
	p := make([]byte, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = body.Read(p)
	}
}
