package stream_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

// BenchmarkRead downloads 64 MiB over a local connection, with and without the limit.
func BenchmarkRead(b *testing.B) {
	const size = 64 << 20
	block := make([]byte, 1<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for range size / len(block) {
			_, _ = w.Write(block)
		}
	}))
	defer srv.Close()
	for _, chunk := range []int{4 << 10, 64 << 10} {
		for _, bc := range []struct {
			name string
			rt   http.RoundTripper
		}{
			{"bare", http.DefaultTransport},
			{"limited", &stream.Transport{Idle: time.Minute}},
		} {
			b.Run(fmt.Sprintf("%dKiB/%s", chunk>>10, bc.name), func(b *testing.B) {
				client := &http.Client{Transport: bc.rt}
				p := make([]byte, chunk)
				b.SetBytes(size)
				b.ReportAllocs()
				reads := 0
				for b.Loop() {
					resp, err := client.Get(srv.URL)
					if err != nil {
						b.Fatal(err)
					}
					total := 0
					for {
						n, err := resp.Body.Read(p)
						total += n
						reads++
						if err == io.EOF {
							break
						}
						if err != nil {
							b.Fatal(err)
						}
					}
					_ = resp.Body.Close()
					if total != size {
						b.Fatal(total)
					}
				}
				b.ReportMetric(float64(reads)/float64(b.N), "reads/op")
			})
		}
	}
}

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
