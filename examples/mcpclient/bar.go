package main

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A bar shows progress on a terminal: a bar if the total is known, otherwise a spinner, and the message
// of the tool.
type bar struct {
	out      *os.File
	progress *mpb.Progress // nil if nothing is shown
	line     *mpb.Bar
	newest   atomic.Pointer[mcp.ProgressNotificationParams]
}

// barWidth is the width of the bar or the spinner in columns.
const barWidth = 24

// steps is the number of steps of a complete bar. update stops before the last step, because only the answer completes
// the call.
const steps = 1000

func (b *bar) update(p *mcp.ProgressNotificationParams) {
	b.newest.Store(p)
	if b.progress == nil {
		b.start()
	}
	if p.Total > 0 {
		b.line.SetCurrent(int64(min(max(p.Progress/p.Total, 0)*steps, steps-1)))
	}
}

func (b *bar) start() {
	b.progress = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(barWidth), mpb.WithAutoRefresh())
	known, unknown := mpb.BarStyle().Build(), mpb.SpinnerStyle().Build()
	filler := mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
		if b.newest.Load().Total > 0 {
			return known.Fill(w, s)
		}
		s.RequestedWidth = 3
		return unknown.Fill(w, s)
	})
	b.line = b.progress.MustAdd(steps, filler, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Elapsed(decor.ET_STYLE_GO, decor.WC{C: decor.DextraSpace})),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			p := b.newest.Load()
			text := []rune(" " + figures(p) + " " + harmless(p.Message))
			return string(text[:min(len(text), max(s.AvailableWidth-barWidth, 0))])
		})),
	)
}

// clear removes the bar from the terminal.
func (b *bar) clear() {
	if b.progress == nil {
		return
	}
	b.line.Abort(true)
	b.progress.Wait()
	b.progress = nil
}
