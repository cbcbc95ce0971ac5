package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// inCall runs do as a call whose host gets a keep-alive every 10 s. It returns the notifications: the
// time in seconds, the progress and the message of each.
func inCall(t *testing.T, limits timeout.Config, do func(c *call)) (told [][3]any, raw []string) {
	t.Helper()
	begun := time.Now()
	p := &proxy{options: &options{keep: 10 * time.Second, alive: signs{progress: true}}}
	s := newSession(p, "test", func(m *message) {
		var n struct {
			Progress float64
			Message  string
		}
		if err := json.Unmarshal(m.Params, &n); err != nil {
			t.Error(err)
		}
		told = append(told, [3]any{time.Since(begun).Seconds(), n.Progress, n.Message})
		raw = append(raw, string(m.raw))
	})
	_, c := s.newCall(readMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}`)))
	c.keepAlive()
	_ = timeout.Run(t.Context(), func(ctx context.Context) error {
		c.begin(ctx, func() observable { return nil }, procgroup.Activity{}, &s.load)
		do(c)
		c.end(false)
		return nil
	}, limits)
	c.close()
	time.Sleep(time.Minute) // nothing follows
	return told, raw
}

func reports(c *call, p float64, text string) string {
	line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1, "progress":%v,"message":%q}}`, p, text)
	c.reported(readMessage([]byte(line)), p, 0, text)
	return line
}

// SPEC 7.3, 7.4: a keep-alive comes when nothing was said for its time, not a nanosecond earlier,
// and the progress sent increases whatever the server reports then.
func TestKeepAliveExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := 1e-6
		six, seven := progress.Step(progress.Step(5)), ""
		told, raw := inCall(t, timeout.Config{Total: time.Hour}, func(c *call) {
			time.Sleep(25 * time.Second) // told at 10 and 20
			reports(c, 5, "five")        // 25
			time.Sleep(10*time.Second - 1)
			reports(c, 5, "five again") // as the server has it
			time.Sleep(11 * time.Second)
			reports(c, 5, "still five") // after a keep-alive
			seven = reports(c, 7, "seven")
			c.hold()
			time.Sleep(10*time.Second + 1)
		})
		want := [][3]any{
			{10.0, 0.0, "waiting for the server, silent for 10 s"},
			{20.0, e, "waiting for the server, silent for 20 s"},
			{25.0, 5.0, "five"},
			{34.999999999, 5.0, "five again"},
			{44.999999999, progress.Step(5), "five again (waiting for the server, silent for 10 s)"},
			{45.999999999, six, "still five"},
			{45.999999999, 7.0, "seven"},
			{55.999999999, progress.Step(7), "seven (waiting for an answer to the server's question, silent for 10 s)"},
		}
		if d := cmp.Diff(want, told); d != "" {
			t.Error(d)
		}
		if raw[6] != seven {
			t.Errorf("%s, want %s", raw[6], seven)
		}
	})
}

// Without limits, a call gets keep-alives only while there are signs of life.
func TestKeepAliveNeedsASign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, _ := inCall(t, timeout.Config{}, func(c *call) {
			time.Sleep(25 * time.Second)
			c.beat(nil)
			time.Sleep(20 * time.Second)
		})
		if d := cmp.Diff([][3]any{{30.0, 0.0, "waiting for the server, silent for 5 s"}}, told); d != "" {
			t.Error(d)
		}
	})
}

// SPEC 4.6: a question holds the idle check until its answer, and a second one until its own.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var elapsed time.Duration
		_, _ = inCall(t, timeout.Config{Idle: 5 * time.Second}, func(c *call) {
			begun := time.Now()
			one, two := c.hold(), c.hold()
			time.Sleep(20 * time.Second)
			one()
			one()
			time.Sleep(20 * time.Second)
			two()
			<-c.pulse.ctx.Done()
			elapsed = time.Since(begun)
		})
		if elapsed != 45*time.Second {
			t.Error(elapsed)
		}
	})
}

// SPEC 4.6: the server may ask before the execution of the call has begun to wait for it.
func TestHoldBeforeTheExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		release := p.hold()
		released := p.hold()
		released()
		begun := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			p.begin(ctx, nil, procgroup.Activity{}, nil)
			time.Sleep(20 * time.Second)
			release()
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: 5 * time.Second})
		if d := time.Since(begun); d != 25*time.Second || !errors.Is(err, timeout.ErrIdle) {
			t.Errorf("%v after %v", err, d)
		}
		p.end(false)
		p.hold()() // nothing is left to hold
	})
}

// A keep-alive before the first report has sent 0, so a report of 0 is raised.
func TestKeepAliveFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, _ := inCall(t, timeout.Config{Total: time.Hour}, func(c *call) {
			time.Sleep(15 * time.Second)
			reports(c, 0, "begins")
		})
		want := [][3]any{{10.0, 0.0, "waiting for the server, silent for 10 s"}, {15.0, progress.Step(0), "begins"}}
		if d := cmp.Diff(want, told); d != "" {
			t.Error(d)
		}
	})
}
