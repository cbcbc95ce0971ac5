package queues

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/hibiken/asynq"
	"github.com/riverqueue/river/rivertype"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const idle = time.Minute

var limits = timeout.Config{Idle: idle}

// Each queue calls work as it would call the worker of a job named "index".
var all = []struct {
	name string
	run  func(*testing.T, func(context.Context) error) error
}{
	{"river", func(t *testing.T, work func(context.Context) error) error {
		return limitRiver(limits)(t.Context(), &rivertype.JobRow{Kind: "index"}, work)
	}},
	{"asynq", func(t *testing.T, work func(context.Context) error) error {
		mux := asynq.NewServeMux()
		mux.Use(limitAsynq(limits, nil))
		mux.HandleFunc("index", func(ctx context.Context, _ *asynq.Task) error { return work(ctx) })
		return mux.ProcessTask(t.Context(), asynq.NewTask("index", nil))
	}},
	{"watermill", func(t *testing.T, work func(context.Context) error) error {
		msg := message.NewMessage("1", nil)
		msg.SetContext(t.Context())
		_, err := limitWatermill(limits, new(topic))(func(msg *message.Message) ([]*message.Message, error) {
			return nil, work(msg.Context())
		})(msg)
		return err
	}},
}

// SPEC 13.4: the job is stopped at its idle limit and not before, and may beat beyond it.
func TestLimits(t *testing.T) {
	for _, q := range all {
		t.Run(q.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := q.run(t, func(ctx context.Context) error {
					time.Sleep(idle - 1)
					heartbeat.Beat(ctx)
					time.Sleep(idle - 1)
					return ctx.Err()
				})
				if err != nil || time.Since(start) != 2*(idle-1) {
					t.Errorf("with a beat in time: %v after %v", err, time.Since(start))
				}
				start = time.Now()
				err = q.run(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				if !errors.Is(err, timeout.ErrIdle) || time.Since(start) != idle {
					t.Errorf("without: %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// SPEC 13.4: the progress of a job is published, the first message at once, then the newest, and the
// last one at the end. The other queues need a server for that.
func TestWatermillProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out topic
		msg := message.NewMessage("7", nil)
		done, err := limitWatermill(limits, &out)(func(msg *message.Message) ([]*message.Message, error) {
			for i := range 15 {
				heartbeat.BeatWith(msg.Context(), i)
				time.Sleep(time.Second)
			}
			return []*message.Message{msg}, nil
		})(msg)
		if err != nil || len(done) != 1 || done[0] == msg || done[0].UUID != "7" {
			t.Errorf("%v, %v", done, err)
		}
		if got := strings.Join(out.got, " "); got != "progress:7:0 progress:7:10 progress:7:14" && got != "progress:7:0 progress:7:9 progress:7:14" {
			t.Error(got)
		}
	})
}

// A topic records the messages that were published.
type topic struct{ got []string }

func (p *topic) Close() error { return nil }

func (p *topic) Publish(name string, messages ...*message.Message) error {
	for _, m := range messages {
		p.got = append(p.got, name+":"+m.UUID+":"+string(m.Payload))
	}
	return nil
}

// docs/scaling.md shows the functions of this package unchanged.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"river.go", "asynq.go", "watermill.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				code := string(text[fset.Position(f.Pos()).Offset:fset.Position(f.End()).Offset])
				if !strings.Contains(string(doc), "```go\n"+code+"\n```\n") {
					t.Errorf("docs/scaling.md lacks %s, or has another:\n%s", f.Name.Name, code)
				}
			}
		}
	}
}
