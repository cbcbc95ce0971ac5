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
	answer := func(id, result string) {
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + "}\n")
	}
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
		switch found := id.FindStringSubmatch(head); {
		case found == nil:
		case strings.Contains(head, `"initialize"`):
			answer(found[1], `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sink","version":"1"}}`)
		case strings.Contains(head, `"long"`):
			answer(found[1], long)
		default:
			answer(found[1], `{"content":[]}`)
		}
	}
}

// BenchmarkLarge makes calls with 10 MB of arguments, and calls with 10 MB of results, to the server and through the
// proxy, and reports the median of each and what the proxy takes as a multiple of it.
func BenchmarkLarge(b *testing.B) {
	const size = 10 << 20
	pad := strings.Repeat(`some text, \"quoted\", `, size/22)
	type end struct {
		in  io.WriteCloser
		out *bufio.Reader
	}
	start := func(b *testing.B, args ...string) end {
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
		b.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
		return end{in, bufio.NewReaderSize(out, 1<<20)}
	}
	ask := func(b *testing.B, to end, id int, method, params string) time.Duration {
		begun := time.Now()
		go func() {
			_, _ = io.WriteString(to.in, `{"jsonrpc":"2.0","id":`+fmt.Sprint(id)+`,"method":"`+method+`","params":`+params+"}\n")
		}()
		for {
			line, err := to.out.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			if strings.Contains(line[:min(len(line), 200)], `"id":`+fmt.Sprint(id)+`,`) {
				return time.Since(begun)
			}
		}
	}
	for name, params := range map[string]string{
		"arguments": `{"name":"short","arguments":{"text":"` + pad + `"}}`,
		"results":   fmt.Sprintf(`{"name":"long","arguments":{"bytes":%d}}`, size),
	} {
		b.Run(name, func(b *testing.B) {
			bare, proxied := start(b, "sink"), start(b, "--", self(b), "sink")
			var took [2][]time.Duration
			for _, to := range []end{bare, proxied} {
				ask(b, to, 0, "initialize", initialize)
			}
			for n := range b.N + 1 {
				for i, to := range []end{bare, proxied} { // in turn, as the machine's speed changes
					if d := ask(b, to, n+1, "tools/call", params); n > 0 {
						took[i] = append(took[i], d)
					}
				}
			}
			median := func(all []time.Duration) float64 {
				slices.Sort(all)
				return all[len(all)/2].Seconds() * 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took[0]), "direct-ms")
			b.ReportMetric(median(took[1]), "proxied-ms")
			b.ReportMetric(median(took[1])/median(took[0]), "ratio")
		})
	}
}
