package natsworker_test

import (
	"math/rand/v2"
	"time"
)

// A scenario is one random run, as data: workers, messages, what is done with each delivery of them, and what happens to
// the network and the server meanwhile.
type scenario struct {
	AckWait    time.Duration
	MaxDeliver int `json:",omitempty"`
	Workers    []workerSpec
	Messages   []message
	Events     []event
}

type workerSpec struct {
	Slots              int
	Conn               bool          `json:",omitempty"` // Options.Conn
	Consume            bool          `json:",omitempty"` // a Handler for each slot, and not Run
	Idle, Total, Grace time.Duration `json:",omitempty"`
	Drain              time.Duration `json:",omitempty"`
}

type message struct {
	At   time.Duration // when it is published
	Acts []act         // by delivery; later ones are done at once
}

// An act is what a function does with a delivery.
type act struct {
	Take time.Duration `json:",omitempty"`
	Beat time.Duration `json:",omitempty"` // between two beats; 0 is none
	Deaf bool          `json:",omitempty"` // it goes on when it is told to stop
	End  ending
}

type ending string

const (
	succeeds ending = "succeeds"
	errs     ending = "errs"
	panics   ending = "panics"
	rejects  ending = "rejects"
	later    ending = "later"
	acks     ending = "acks" // by itself, as
	naks     ending = "naks" // this
)

// An event is what happens to a worker's way to the server, or to the server, and for how long.
type event struct {
	At     time.Duration
	What   happening
	Worker int           `json:",omitempty"`
	For    time.Duration `json:",omitempty"`
}

type happening string

const (
	cuts     happening = "cuts"     // no connection
	keepsIn  happening = "keepsIn"  // what the server sends is late
	keepsOut happening = "keepsOut" // what the worker sends is
	stalls   happening = "hangs"    // the server does nothing, for everybody
	restarts happening = "restarts" // the server, in order
	kills    happening = "kills"    // the server, as SIGKILL does
	stops    happening = "stops"    // the worker; another takes its place
)

// random returns the scenario of a seed. Its times often coincide with each other's and with the limits, since that is
// where races are.
func random(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	s := scenario{AckWait: []time.Duration{6 * time.Second, 12 * time.Second, 30 * time.Second}[r.IntN(3)]}
	if r.IntN(3) == 0 {
		s.MaxDeliver = 2 + r.IntN(4)
	}
	// some returns a time, of which many are multiples of those that count.
	some := func(most time.Duration) time.Duration {
		d := time.Duration(r.Int64N(int64(most) + 1))
		switch r.IntN(4) {
		case 0:
			d = s.AckWait / 6 * time.Duration(1+r.IntN(10))
		case 1:
			d = time.Duration(1+r.IntN(8)) * 500 * time.Millisecond
		}
		return min(d, most)
	}
	disturbed := r.IntN(4) > 0
	for range 1 + r.IntN(3) {
		w := workerSpec{Slots: 1 + r.IntN(3), Conn: r.IntN(2) == 0, Consume: !disturbed && r.IntN(3) == 0}
		if r.IntN(3) > 0 {
			w.Idle = time.Second + some(2*s.AckWait)
		}
		if r.IntN(4) == 0 {
			w.Total = time.Second + some(3*s.AckWait)
		}
		w.Grace = some(3 * time.Second)
		if r.IntN(3) == 0 {
			w.Drain = some(s.AckWait)
		}
		s.Workers = append(s.Workers, w)
	}
	for range 1 + r.IntN(8) {
		m := message{At: some(s.AckWait)}
		for range r.IntN(4) {
			a := act{Take: some(2 * s.AckWait), Deaf: r.IntN(6) == 0, End: []ending{succeeds, succeeds, errs, panics, rejects, later, acks, naks}[r.IntN(8)]}
			if r.IntN(2) == 0 {
				a.Beat = 100*time.Millisecond + some(s.AckWait/2)
			}
			m.Acts = append(m.Acts, a)
		}
		m.Acts = append(m.Acts, act{Take: some(2 * s.AckWait), Beat: time.Second / 2, End: succeeds})
		s.Messages = append(s.Messages, m)
	}
	if disturbed {
		at := time.Duration(0)
		for range 1 + r.IntN(4) {
			at += some(s.AckWait)
			e := event{At: at, What: []happening{cuts, cuts, keepsIn, keepsOut, stalls, restarts, kills, stops}[r.IntN(8)],
				Worker: r.IntN(len(s.Workers)), For: some(s.AckWait * 3 / 2)}
			s.Events = append(s.Events, e)
			at += e.For
		}
	}
	if disturbed && r.IntN(3) == 0 { // the answer to a renewal is late, and no other renewal arrives
		const late = 500 * time.Millisecond
		e := event{At: time.Second + s.AckWait/6*time.Duration(r.IntN(4)) - late/2, What: keepsIn, Worker: r.IntN(len(s.Workers)), For: late}
		s.Events = []event{e, {At: e.At + late*3/2, What: cuts, Worker: e.Worker, For: 2 * s.AckWait}}
		long := act{Take: 4 * s.AckWait, Beat: time.Second / 2, End: succeeds}
		s.Messages[0] = message{Acts: []act{long, long}}
	}
	return s
}
