package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// BenchmarkCall makes calls one after the other, to the server and through the proxy. It reports the
// median and the 99th percentile of each, and the difference of the medians.
func BenchmarkCall(b *testing.B) {
	measure := func(b *testing.B, in io.Writer, out *bufio.Reader) []time.Duration {
		ask := func(line, id string) time.Duration {
			begun := time.Now()
			if _, err := io.WriteString(in, line+"\n"); err != nil {
				b.Fatal(err)
			}
			for {
				got, err := out.ReadString('\n')
				if err != nil {
					b.Fatal(err)
				}
				if strings.Contains(got, `"id":`+id+`,`) {
					return time.Since(begun)
				}
			}
		}
		ask(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":`+initialize+`}`, `"init"`)
		took := make([]time.Duration, 0, b.N)
		for i := range b.N + 100 {
			d := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":%d}}}`, i, i), fmt.Sprint(i))
			if i >= 100 { // warm
				took = append(took, d)
			}
		}
		slices.Sort(took)
		return took
	}
	// Calls alternate: concurrent ones would disturb each other, and the machine's speed may change
	// between two separate loops.
	run := func(b *testing.B, args ...string) []time.Duration {
		cmd := exec.Command(self(b), args...)
		if args[0] != "evil" && args[0] != "sink" {
			cmd = harness.Command("proxy", args...)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() {
			_ = in.Close()
			_ = cmd.Wait()
		}()
		return measure(b, in, bufio.NewReader(out))
	}
	for name, flags := range map[string][]string{"plain": nil, "soft": {"-soft", "1m"}} {
		b.Run(name, func(b *testing.B) {
			reportTimes(b, run(b, "evil"), run(b, append(flags, evilArgs(b)...)...))
		})
	}
}

func reportTimes(b *testing.B, direct, proxied []time.Duration) {
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	at := func(all []time.Duration, percent int) time.Duration { return all[(len(all)-1)*percent/100] }
	b.ReportMetric(0, "ns/op") // of both
	b.ReportMetric(micros(at(direct, 50)), "direct-µs")
	b.ReportMetric(micros(at(direct, 99)), "direct-p99-µs")
	b.ReportMetric(micros(at(proxied, 50)), "proxied-µs")
	b.ReportMetric(micros(at(proxied, 99)), "proxied-p99-µs")
	b.ReportMetric(micros(at(proxied, 50)-at(direct, 50)), "added-µs")
}
