package inspect

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/timeline.svg")

// SPEC 14.2: docs/timeline.svg is drawn by the code. Its execution worked, waited for a person,
// worked again and got stuck.
func TestTimelineOfTheDocs(t *testing.T) {
	picture := timeline{
		Tool: "index", ID: 7, Elapsed: 280 * time.Second, Outcome: "idle timeout",
		Total: 5 * time.Minute, Idle: time.Minute,
	}
	var m mark
	for at := time.Duration(0); at <= picture.Elapsed; at += 4 * time.Second {
		m.At = at
		switch {
		case at > 80*time.Second && at <= 140*time.Second:
			m.Held += 4 * time.Second
		case at <= 220*time.Second:
			m.LastBeat, m.Beats = at, m.Beats+20
		}
		picture.Marks = append(picture.Marks, m)
	}
	var got bytes.Buffer
	if err := picture.writeSVG(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`class="work"`, `class="held"`, "idle limit", "total limit", "index #7, idle timeout after 4m40s, "} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %s in it", want)
		}
	}
	if strings.LastIndex(got.String(), `class="held"`) < strings.LastIndex(got.String(), `class="work"`) {
		t.Error("work is drawn over a hold")
	}
	const file = "../../docs/timeline.svg"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("docs/timeline.svg is out of date; go test ./timeout/inspect -run Timeline -update writes it")
	}
}
