package natsworker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A fakeConsumer has settings, and no server behind it: for what is about exact time, and
// for what a server cannot be made to do on demand.
type fakeConsumer struct {
	jetstream.Consumer
	config jetstream.ConsumerConfig

	// For Run:
	messages chan jetstream.Msg
	onItsWay time.Duration // from the request to the arrival of a message
	silent   atomic.Bool   // Info has no answer
	asking   atomic.Int32
	failing  atomic.Pointer[error] // what Next returns
}

// Next is a request that stays with the server for a second.
func (c *fakeConsumer) Next(...jetstream.FetchOpt) (jetstream.Msg, error) {
	c.asking.Add(1)
	defer c.asking.Add(-1)
	select {
	case m := <-c.messages:
		time.Sleep(c.onItsWay)
		return m, nil
	case <-time.After(time.Second):
		if err := c.failing.Load(); err != nil {
			return nil, *err
		}
		return nil, nats.ErrTimeout
	}
}

func (c *fakeConsumer) Info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	if c.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.CachedInfo(), nil
}

func (c *fakeConsumer) CachedInfo() *jetstream.ConsumerInfo {
	return &jetstream.ConsumerInfo{Stream: "JOBS", Name: "workers", Config: c.config}
}

func consumerWith(change func(*jetstream.ConsumerConfig)) *fakeConsumer {
	c := &fakeConsumer{messages: make(chan jetstream.Msg, 100), config: jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxDeliver: -1,
	}}
	if change != nil {
		change(&c.config)
	}
	return c
}

// A fakeMsg notes its acknowledgements and their times.
type fakeMsg struct {
	jetstream.Msg
	delivery uint64
	begun    time.Time
	data     string
	fail     func(what string) error // nil never fails
	brief    bool                    // renewals are not noted
	age      time.Duration           // since it was published

	mu   sync.Mutex
	said []string
}

func newFakeMsg(delivery uint64) *fakeMsg { return &fakeMsg{delivery: delivery, begun: time.Now()} }

func (m *fakeMsg) say(what string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(what); err != nil {
			return err
		}
	}
	if m.brief && what == "in progress" {
		return nil
	}
	m.said = append(m.said, fmt.Sprintf("%v %s", time.Since(m.begun), what))
	return nil
}

func (m *fakeMsg) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.said...)
}

func (m *fakeMsg) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Stream: "JOBS", Consumer: "workers", NumDelivered: m.delivery,
		Sequence: jetstream.SequencePair{Stream: 1, Consumer: m.delivery}, Timestamp: m.begun.Add(-m.age)}, nil
}

func (m *fakeMsg) Subject() string { return "jobs" }
func (m *fakeMsg) Headers() nats.Header {
	return nats.Header{jetstream.MsgIDHeader: []string{"order 17"}}
}
func (m *fakeMsg) Reply() string { return "$JS.ACK" }
func (m *fakeMsg) Data() []byte  { return []byte(m.data) }

func (m *fakeMsg) Ack() error                         { return m.say("ack") }
func (m *fakeMsg) Nak() error                         { return m.say("nak") }
func (m *fakeMsg) NakWithDelay(d time.Duration) error { return m.say(fmt.Sprintf("nak %v", d)) }
func (m *fakeMsg) InProgress() error                  { return m.say("in progress") }
func (m *fakeMsg) Term() error                        { return m.say("term") }
func (m *fakeMsg) TermWithReason(s string) error      { return m.say("term " + s) }

func (m *fakeMsg) DoubleAck(ctx context.Context) error {
	if err := m.say("double ack"); errors.Is(err, errNoAnswer) {
		<-ctx.Done()
		return ctx.Err()
	} else if err != nil {
		return err
	}
	return nil
}

var errNoAnswer = errors.New("no answer")
