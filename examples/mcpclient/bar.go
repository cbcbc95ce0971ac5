package main

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A bar shows progress on a terminal: a bar where the total is known, a spinner where it
// is not, and what the tool says.
type bar struct {
	out      *os.File
	progress *mpb.Progress // nil where nothing is shown
	line     *mpb.Bar
	newest   atomic.Pointer[mcp.ProgressNotificationParams]
}

// barWidth is how many columns of the terminal the bar or the spinner has.
const barWidth = 24

// steps is what a bar's total stands for. The last one is never taken: the bar is over when
// the answer comes.
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

// clear takes the bar off the terminal.
func (b *bar) clear() {
	if b.progress == nil {
		return
	}
	b.line.Abort(true)
	b.progress.Wait()
	b.progress = nil
}
