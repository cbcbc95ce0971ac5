package inspect

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// pageSize is the number of executions on one page.
const pageSize = 100

// A query holds the parameters of a request for the page.
type query struct {
	Tool, State, Sort string
	Down              bool // largest first
	Page              int  // the number of the page, from 1
	ID                uint64
	Stack             bool
}

// sorts holds the comparison for each column by which the executions can be sorted. The first click sorts in
// descending order.
var sorts = map[string]func(a, b *timeout.Snapshot) int{
	"id":      func(a, b *timeout.Snapshot) int { return cmp.Compare(a.ID, b.ID) },
	"tool":    func(a, b *timeout.Snapshot) int { return strings.Compare(a.Tool, b.Tool) },
	"elapsed": func(a, b *timeout.Snapshot) int { return cmp.Compare(a.Elapsed, b.Elapsed) },
	"silent":  func(a, b *timeout.Snapshot) int { return cmp.Compare(a.SinceBeat, b.SinceBeat) },
	"beats":   func(a, b *timeout.Snapshot) int { return cmp.Compare(a.Beats, b.Beats) },
}

// parse reads a query. It replaces an invalid sort, page or ID by its default, because people do not type queries.
func parse(v url.Values) query {
	q := query{Tool: v.Get("tool"), State: v.Get("state"), Sort: v.Get("sort"), Down: v.Get("dir") != "up", Page: 1}
	if sorts[q.Sort] == nil {
		q.Sort = "elapsed"
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 0 {
		q.Page = n
	}
	q.ID, _ = strconv.ParseUint(v.Get("id"), 10, 64)
	q.Stack = v.Has("stack")
	return q
}

// Link returns the query as the end of an address, after the given changes, which are pairs of a key and a value,
// such as "page", "2". The page is 1 unless it is among them.
func (q query) Link(change ...string) string {
	v := url.Values{}
	set := func(key, value string) {
		if v.Del(key); value != "" {
			v.Set(key, value)
		}
	}
	set("tool", q.Tool)
	set("state", q.State)
	if q.Sort != "elapsed" {
		set("sort", q.Sort)
	}
	if !q.Down {
		set("dir", "up")
	}
	for i := 0; i+1 < len(change); i += 2 {
		set(change[i], change[i+1])
	}
	return "?" + v.Encode()
}

// A toolRow holds the figures of a tool that the page shows.
type toolRow struct {
	Tool        string            `json:"tool"`
	Running     int               `json:"running"`
	Near        int               `json:"nearIdle"`
	Runs        uint64            `json:"runs"`
	Outcomes    map[string]uint64 `json:"outcomes,omitempty"`
	Abandoned   uint64            `json:"abandoned,omitempty"`
	WouldStop   uint64            `json:"wouldHaveStopped,omitempty"` // runs that an observed limit would have stopped
	Duration50  millis            `json:"durationP50Ms"`
	Duration95  millis            `json:"durationP95Ms"`
	DurationMax millis            `json:"durationMaxMs"`
	Silence50   millis            `json:"silenceP50Ms"`
	Silence95   millis            `json:"silenceP95Ms"`
	SilenceMax  millis            `json:"silenceMaxMs"`
	Suggested   millis            `json:"suggestedIdleMs,omitempty"` // 0 if fewer than enoughRuns runs have succeeded
}

// Or returns m, a figure of the ended runs, as text, or a dash if no run has ended.
func (t toolRow) Or(m millis) string {
	if t.Runs == 0 {
		return "–"
	}
	return m.String()
}

// Failed returns the number of runs that have failed: that returned an error, or were commands that were stopped for
// their behaviour.
func (t toolRow) Failed() uint64 {
	return t.Outcomes[failed] + t.Outcomes[input] + t.Outcomes[terminal] + t.Outcomes[memory] + t.Outcomes[output]
}

// Stopped returns the number of runs that a limit has stopped.
func (t toolRow) Stopped() uint64 { return t.Outcomes[idle] + t.Outcomes[total] }

// A view holds the content of the page at one instant.
type view struct {
	Since   time.Time      `json:"since"`
	Now     time.Time      `json:"now"`
	Total   int            `json:"running"` // number of running executions, before filtering
	States  map[string]int `json:"states"`
	Tools   []toolRow      `json:"tools"`
	Others  uint64         `json:"runsOfOtherTools,omitempty"`
	Matched int            `json:"matched"` // number of running executions that the filters match
	Page    int            `json:"page"`
	Pages   int            `json:"pages"`
	Runs    []row          `json:"runs"`
	Recent  []row          `json:"recent"`

	Query query `json:"-"`
	Abort bool  `json:"-"` // whether the page can abort executions
}

// look returns the view that q selects.
func look(r *recorder, q query) *view {
	v := &view{Since: r.since, Now: time.Now(), States: make(map[string]int), Query: q, Runs: []row{}, Recent: []row{}, Tools: []toolRow{}}
	tools := make(map[string]*toolRow)
	toolOf := func(name string) *toolRow {
		if tools[name] == nil {
			tools[name] = &toolRow{Tool: name}
		}
		return tools[name]
	}
	// Only the snapshots of the selected page become rows, because there may be many thousands of executions.
	var runs []*timeout.Snapshot
	for _, x := range timeout.Running() {
		s := x.Snapshot()
		if s.State == timeout.StateEnded {
			continue
		}
		s.Tool = texts.Short(s.Tool, maxText)
		v.Total++
		v.States[s.State.String()]++
		t := toolOf(s.Tool)
		t.Running++
		if s.State == timeout.StateNearIdle {
			t.Near++
		}
		if (q.Tool == "" || q.Tool == s.Tool) && (q.State == "" || q.State == s.State.String()) {
			runs = append(runs, &s)
		}
	}
	order := sorts[q.Sort]
	slices.SortFunc(runs, func(a, b *timeout.Snapshot) int {
		c := order(a, b)
		if q.Down {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.ID, b.ID))
	})
	v.Matched = len(runs)
	v.Pages = max((v.Matched+pageSize-1)/pageSize, 1)
	v.Page = min(q.Page, v.Pages)
	for _, s := range runs[(v.Page-1)*pageSize : min(v.Page*pageSize, v.Matched)] {
		v.Runs = append(v.Runs, newRow(s))
	}
	for _, e := range r.recent(pageSize, func(e *ended) bool { return q.Tool == "" || q.Tool == e.Tool }) {
		v.Recent = append(v.Recent, e.row)
	}

	figures, others := r.figures()
	v.Others = others
	for i := range figures {
		stats := &figures[i]
		t := toolOf(stats.name)
		t.Runs, t.Abandoned, t.WouldStop, t.Outcomes = stats.durations.count, stats.abandoned, stats.wouldStop, make(map[string]uint64)
		for o, n := range stats.outcomes {
			if n > 0 {
				t.Outcomes[outcomes[o]] = n
			}
		}
		t.Duration50, t.Duration95, t.DurationMax = percentiles(&stats.durations)
		t.Silence50, t.Silence95, t.SilenceMax = percentiles(&stats.silences)
		t.Suggested = millis(stats.suggested())
	}
	for _, t := range tools {
		v.Tools = append(v.Tools, *t)
	}
	slices.SortFunc(v.Tools, func(a, b toolRow) int {
		return cmp.Or(cmp.Compare(b.Running, a.Running), cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Tool, b.Tool))
	})
	return v
}

func percentiles(h *histogram) (p50, p95, most millis) {
	return millis(h.percentile(50)), millis(h.percentile(95)), millis(h.max)
}

// find returns the row of the execution with the ID in q, with its present stack if q asks for it and the execution
// is running. It returns nil if the execution is neither running nor among the recorded ended ones.
func find(r *recorder, q query) *row {
	if x := running(q.ID); x != nil {
		s := x.Snapshot()
		if s.State != timeout.StateEnded {
			w := newRow(&s)
			if q.Stack {
				w.Stack = string(x.Stack())
			}
			return &w
		}
	}
	if e := r.withID(q.ID); e != nil {
		return &e.row
	}
	return nil
}

// AllStates returns the states by which the page can be filtered: all but StateEnded.
func (v *view) AllStates() []string {
	var all []string
	for s := timeout.StateRunning; s < timeout.StateEnded; s++ {
		all = append(all, s.String())
	}
	return all
}

// A column is the heading of a column by which the executions can be sorted.
type column struct {
	Title, Link string
	Is, Down    bool // whether the page is sorted by this column, and with the largest value first
}

// Column returns the heading of the column with the given key of sorts. Its link reverses the order if the column is
// already the sort key.
func (v *view) Column(key, title string) column {
	c := column{Title: title, Is: v.Query.Sort == key, Down: v.Query.Down}
	dir := ""
	if c.Is && c.Down {
		dir = "up"
	}
	c.Link = v.Query.Link("sort", key, "dir", dir)
	return c
}
