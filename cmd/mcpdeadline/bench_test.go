package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// sink is a server that reads a line, and answers by what stands at its beginning.
func sink() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	long := `{"content":[{"type":"text","text":"` + strings.Repeat(`some text, \"quoted\", `, 10<<20/22) + `"}]}`
	id := regexp.MustCompile(`"id":(\d+)`)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) == 0 {
			return
		}
		head := string(line[:min(len(line), 300)])
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		result := `{"content":[]}`
		switch found := id.FindStringSubmatch(head); {
		case found == nil:
			continue
		case strings.Contains(head, `"initialize"`):
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sink","version":"1"}}`
		case strings.Contains(head, `"long"`):
			result = long
		}
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + id.FindStringSubmatch(head)[1] + `,"result":` + result + "}\n")
	}
}

// BenchmarkCall makes calls in turn to a server and to one through the proxy, and reports the median and the 99th
// percentile of each, and the difference of the medians. Some have 10 MB of arguments or of results.
func BenchmarkCall(b *testing.B) {
	const size = 10 << 20
	for _, bc := range []struct {
		name, server, params string
		flags                []string
	}{
		{"plain", "evil", `{"name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":%d}}`, nil},
		{"soft", "evil", `{"name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":%d}}`, []string{"-soft", "1m"}},
		{"arguments", "sink", `{"name":"short","x":%d,"arguments":{"text":"` + strings.Repeat(`some text, \"quoted\", `, size/22) + `"}}`, nil},
		{"results", "sink", `{"name":"long","x":%d}`, nil},
	} {
		b.Run(bc.name, func(b *testing.B) {
			start := func(cmd *exec.Cmd) func(id int, method, params string) time.Duration {
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
				out := bufio.NewReaderSize(stdout, 1<<20)
				return func(id int, method, params string) time.Duration {
					begun := time.Now()
					go func() {
						_, _ = io.WriteString(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":`, id, method)+params+"}\n")
					}()
					for {
						line, err := out.ReadString('\n')
						if err != nil {
							b.Fatal(err)
						}
						if strings.Contains(line[:min(len(line), 200)], fmt.Sprintf(`"id":%d,`, id)) {
							return time.Since(begun)
						}
					}
				}
			}
			// They alternate: the machine's speed may change between two separate loops.
			servers := []func(int, string, string) time.Duration{start(exec.Command(self(b), bc.server)), start(harness.Command("proxy", append(bc.flags, "--", self(b), bc.server)...))}
			took := make([][]time.Duration, 2)
			for id := range b.N + 10 {
				for i, ask := range servers {
					method, params := "tools/call", strings.Replace(bc.params, "%d", fmt.Sprint(id), 1)
					if id == 0 {
						method, params = "initialize", initialize
					}
					if d := ask(id, method, params); id >= 10 { // warm
						took[i] = append(took[i], d)
					}
				}
			}
			at := func(i, percent int) float64 {
				slices.Sort(took[i])
				return float64(took[i][(len(took[i])-1)*percent/100]) / float64(time.Microsecond)
			}
			b.ReportMetric(0, "ns/op") // of both
			for i, name := range []string{"direct", "proxied"} {
				b.ReportMetric(at(i, 50), name+"-µs")
				b.ReportMetric(at(i, 99), name+"-p99-µs")
			}
			b.ReportMetric(at(1, 50)-at(0, 50), "added-µs")
			b.ReportMetric(at(1, 50)/at(0, 50), "ratio")
		})
	}
}
