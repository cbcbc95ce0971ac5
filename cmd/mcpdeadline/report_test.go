package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress"
)

// SPEC 7.3, 7.4: a keep-alive comes when nothing was said for its time, not a nanosecond earlier, and the progress sent
// increases whatever the server reports then. Without limits, a call gets keep-alives only while there are signs of life:
// otherwise the host would never find out that it hangs.
func TestKeepAlives(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name, total string
		do          func(p *virtual, report func(float64, string) string) (raw string)
		want        []string
	}{
		{"exact", "1h", func(p *virtual, report func(float64, string) string) string {
			p.Sleep(25 * s) // told at 10 and 20
			report(5, "five")
			p.Sleep(10*s - 1)
			report(5, "five again") // as the server has it
			p.Sleep(11 * s)
			report(5, "still five") // after a keep-alive
			raw := report(7, "seven")
			p.say(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`)
			p.Sleep(10*s + 1)
			return raw
		}, []string{
			"10s 0 waiting for the server, silent for 10 s",
			"20s 1e-06 waiting for the server, silent for 20 s",
			"25s 5 five",
			"34.999999999s 5 five again",
			fmt.Sprint("44.999999999s ", progress.Step(5), " five again (waiting for the server, silent for 10 s)"),
			fmt.Sprint("45.999999999s ", progress.Step(progress.Step(5)), " still five"),
			"45.999999999s 7 seven",
			fmt.Sprint("55.999999999s ", progress.Step(7), " seven (waiting for an answer to the server's question, silent for 10 s)"),
		}},
		{"a first report of 0 after a keep-alive", "1h", func(p *virtual, report func(float64, string) string) string {
			p.Sleep(15 * s)
			report(0, "begins")
			return ""
		}, []string{"10s 0 waiting for the server, silent for 10 s", fmt.Sprint("15s ", progress.Step(0), " begins")}},
		{"without limits", "0", func(p *virtual, _ func(float64, string) string) string {
			p.Sleep(25 * s)
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			p.Sleep(20 * s)
			return ""
		}, []string{"30s 0 waiting for the server, silent for 5 s"}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			raw := ""
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				go func() {
					raw = tc.do(p, func(n float64, text string) string {
						line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1, "progress":%v,"message":%q}}`, n, text)
						p.say(line)
						return line
					})
					p.answer(m, `{"content":[]}`)
				}()
				return true
			}, "-keep-alive", "10s", "-idle", "0", "-total", tc.total, "-alive", "progress,log").initialized()
			h.await(h.start("1", "x", `{}`, "1"), "the call")
			time.Sleep(time.Minute) // nothing follows
			h.mu.Lock()
			defer h.mu.Unlock()
			var told []string
			for i, line := range h.lines {
				var w wire
				if _ = json.Unmarshal([]byte(line), &w); w.Method == "notifications/progress" {
					told = append(told, fmt.Sprintf("%v %v %s", h.at[i], w.Params.Progress, w.Params.Message))
				}
			}
			if d := cmp.Diff(tc.want, told); d != "" {
				t.Error(d)
			}
			if raw != "" && !slices.Contains(h.lines, raw) {
				t.Errorf("%s is not as it was sent", raw)
			}
		})
	}
}
