package natstasks_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

const tasksStream, leasesStream, resultsStream = "KV_mcp-tasks", "KV_mcp-tasks-leases", "OBJ_mcp-tasks-results"

// A world is a server, and the ways to it. In a bubble of synctest its time is that of the bubble: it is the real server,
// and only the network is simulated.
type world struct {
	testing.TB
	options server.Options
	server  atomic.Pointer[server.Server] // nil while there is none
	url     string                        // of servers that are reached by TCP, and not by a link
}

// inBubble runs a test with a server in simulated time. There is one bubble at a time, and no other server meanwhile, since
// nats.go and the server have variables for the whole process: the timers that are used again, and the server's clock for
// its files, which is told the time ten times a second, by a goroutine that would be no bubble's.
func inBubble(t *testing.T, test func(*world)) {
	t.Helper()
	timers.p = sync.Pool{}
	clockUsers.Store(1)
	defer func() {
		timers.p = sync.Pool{}
		clockUsers.Store(0)
	}()
	synctest.Test(t, func(t *testing.T) {
		clock.Store(time.Now().UnixNano())
		tick := time.NewTicker(ats.TickInterval)
		ended := make(chan struct{})
		t.Cleanup(func() { close(ended) })
		go func() {
			for {
				select {
				case now := <-tick.C:
					clock.Store(now.UnixNano())
				case <-ended:
					return
				}
			}
		}()
		test(newWorld(t, server.Options{DontListen: true, JetStream: true}))
	})
}

//go:linkname timers github.com/nats-io/nats%2ego.globalTimerPool
var timers struct{ p sync.Pool }

//go:linkname clock github.com/nats-io/nats-server/v2/server/ats.utime
var clock atomic.Int64

//go:linkname clockUsers github.com/nats-io/nats-server/v2/server/ats.refs
var clockUsers atomic.Int64

func newWorld(t testing.TB, o server.Options) *world {
	t.Helper()
	o.Host, o.Port, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	w := &world{TB: t, options: o}
	w.start()
	if !o.DontListen {
		w.url = w.server.Load().ClientURL()
	}
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.Helper()
	o := w.options
	s, err := server.NewServer(&o)
	if err != nil {
		w.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		w.Fatal("the server is not ready")
	}
	w.server.Store(s)
}

func (w *world) stop() {
	if s := w.server.Swap(nil); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// kill ends the server as SIGKILL does: what it has not written by now it never has. links are those of all clients.
func (w *world) kill(links ...*simnet.Link) {
	w.Helper()
	synctest.Wait()
	left := filepath.Join(w.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(w.options.StoreDir)); err != nil {
		w.Fatal(err)
	}
	for _, l := range links {
		l.Cut()
	}
	w.stop()
	for _, l := range links {
		l.Mend()
	}
	w.options.StoreDir = left
}

// link returns a way to whichever server there is.
func (w *world) link() *simnet.Link {
	l := simnet.New(func() (net.Conn, error) {
		if s := w.server.Load(); s != nil {
			return s.InProcessConn()
		}
		return nil, syscall.ECONNREFUSED
	}, nil)
	l.Handshake = [2]int{simnet.ToServer: 1, simnet.ToClient: 2} // INFO, CONNECT and PING, PONG
	return l
}

// connect makes a connection, which is closed at the end.
func (w *world) connect(way nats.CustomDialer, opts ...nats.Option) jetstream.JetStream {
	w.Helper()
	if w.url == "" {
		opts = append(opts, nats.SetCustomDialer(way))
	}
	nc, err := nats.Connect(cmp.Or(w.url, "nats://127.0.0.1"), append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, opts...)...) // outages are meant
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		w.Fatal(err)
	}
	return js
}

// open opens a store on a connection of its own.
func (w *world) open() *natstasks.Store {
	w.Helper()
	return w.openWith(natstasks.Options{})
}

func (w *world) openWith(opts natstasks.Options) *natstasks.Store {
	w.Helper()
	s, err := natstasks.Open(context.Background(), w.connect(w.link()), opts)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { s.Close() }) // the server may be gone
	return s
}

// eventually waits for what takes its time, and returns how long that was.
func (w *world) eventually(what string, ok func() bool) time.Duration {
	w.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > 10*time.Minute {
			w.Fatalf("waited for %s, in vain", what)
		}
		time.Sleep(200 * time.Millisecond)
	}
	return time.Since(begun)
}

// status returns what the bucket itself has of the task, "" where it has nothing.
func (w *world) status(js jetstream.JetStream, id string) task.Status {
	w.Helper()
	st, err := js.Stream(context.Background(), tasksStream)
	if err != nil {
		w.Fatal(err)
	}
	m, err := st.GetLastMsgForSubject(context.Background(), "$KV.mcp-tasks.*."+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return ""
	}
	var r task.Record
	if err = errors.Join(err, json.Unmarshal(m.Data, &r)); err != nil {
		w.Fatal(err)
	}
	return r.Status
}

// messages returns how many there are in a stream.
func (w *world) messages(js jetstream.JetStream, stream string) uint64 {
	w.Helper()
	st, err := js.Stream(context.Background(), stream)
	if err != nil {
		w.Fatal(err)
	}
	return st.CachedInfo().State.Msgs
}

var client = adapter.Caller{Version: "2026-07-28", Declared: true, Principal: "ann"}

type tool func(ctx context.Context) (string, error)

// begin calls a tool as a task that gets its handle at once. It calls ended when the call has ended, also
// where the tool was never called since the task was cancelled first.
func begin(ctx context.Context, tasks *task.Tasks, f tool, ended ...func()) (*task.Record, error) {
	call := adapter.Call{Tool: "build", Caller: client, Soft: -1}
	var record *task.Record
	_, err := adapter.Do(ctx, tasks, call, func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		for _, f := range ended {
			defer f()
		}
		return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build"}, f)
	}, func(text string, err error) task.Answer {
		if err != nil {
			text = err.Error()
		}
		raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil})
		return task.Answer{Result: raw}
	}, func(r *task.Record, _ map[string]any) (string, error) { record = r; return "", nil })
	return record, err
}

func (w *world) mustBegin(tasks *task.Tasks, f tool) *task.Record {
	w.Helper()
	r, err := begin(context.Background(), tasks, f)
	if err != nil || r == nil {
		w.Fatalf("no task: %v, %v", r, err)
	}
	return r
}

// ask sends a request, and returns the result as JSON values.
func ask(tasks *task.Tasks, c adapter.Caller, method string, id string) (got map[string]any, err error) {
	raw, _ := json.Marshal(map[string]any{"taskId": id})
	fields, err := adapter.Serve(context.Background(), tasks, nil, c, method, raw)
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(fields); err == nil {
		err = json.Unmarshal(raw, &got)
	}
	return got, err
}

func hangs(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func running(id string) task.Record {
	now := time.Now()
	return task.Record{ID: id, Owner: "ann", Status: task.Working, Started: now, Created: now, Updated: now, Retention: time.Minute}
}

func (w *world) create(s *natstasks.Store, id string) task.Record {
	w.Helper()
	r, err := s.Create(context.Background(), running(id))
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func ended(r task.Record, result string) task.Record {
	r.Status, r.Expires = task.Completed, time.Now().Add(r.Retention)
	r.Answer = &task.Answer{Result: []byte(result)}
	return r
}

// A faulty connection does not answer some questions about streams. What cannot be made to fail on
// demand in a server is one stream without a leader beside others that have theirs.
type faulty struct {
	jetstream.JetStream
	deaf atomic.Bool // to what the stream of tasks has
	away atomic.Bool // reads of leases fail
	mute atomic.Bool // records of tasks are neither stored nor purged
}

func (f *faulty) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if f.mute.Load() && strings.HasPrefix(m.Subject, "$KV.mcp-tasks.") {
		return nil, errors.New("no leader")
	}
	return f.JetStream.PublishMsg(ctx, m, opts...)
}

func (f *faulty) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if name == tasksStream && f.deaf.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	st, err := f.JetStream.Stream(ctx, name)
	return &faultyStream{st, name, f}, err
}

func (f *faulty) CreateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	st, err := f.JetStream.CreateStream(ctx, c)
	return &faultyStream{st, c.Name, f}, err
}

type faultyStream struct {
	jetstream.Stream
	name string
	of   *faulty
}

func (s *faultyStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	if s.name == leasesStream && s.of.away.Load() {
		return nil, errors.New("no leader")
	}
	return s.Stream.GetLastMsgForSubject(ctx, subject)
}

func (s *faultyStream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	if s.name == tasksStream && s.of.mute.Load() {
		return errors.New("no leader")
	}
	return s.Stream.Purge(ctx, opts...)
}

func (w *world) openFaulty() (*natstasks.Store, *faulty) {
	w.Helper()
	f := &faulty{JetStream: w.connect(w.link())}
	s, err := natstasks.Open(context.Background(), f, natstasks.Options{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { s.Close() })
	return s, f
}
