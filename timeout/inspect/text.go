package inspect

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// writeText writes the page as text for a terminal.
func writeText(w io.Writer, v *view) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d running, watched for %s\n", v.Total, since(v.Since, v.Now))
	if len(v.Tools) > 0 {
		fmt.Fprint(t, "\nTOOL\tRUNNING\tRUNS\tFAILED\tTIMED OUT\tWOULD HAVE STOPPED\tABORTED\tDURATION MEDIAN\t95%\tSILENCE MEDIAN\t95%\tMAX\tSUGGESTED IDLE\n")
		for _, tool := range v.Tools {
			suggested := "-"
			if tool.Suggested > 0 {
				suggested = tool.Suggested.String()
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", texts.Line(name(tool.Tool)), tool.Running, tool.Runs,
				tool.Failed()+tool.Outcomes[panicked], tool.Stopped(), tool.WouldStop, tool.Outcomes[aborted],
				tool.Or(tool.Duration50), tool.Or(tool.Duration95), tool.Or(tool.Silence50), tool.Or(tool.Silence95), tool.Or(tool.SilenceMax), suggested)
		}
	}
	if len(v.Runs) > 0 {
		fmt.Fprint(t, "\nRUNNING\tTOOL\tSTATE\tELAPSED\tSILENT\tIDLE\tTOTAL\tBEATS\tDETAIL\n")
		for _, r := range v.Runs {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, texts.Line(name(r.Tool)), stateText(&r), r.Elapsed, r.Silent,
				limitText(r.Idle), limitText(r.Total), r.Beats, texts.Line(r.Detail))
		}
		if v.Pages > 1 {
			fmt.Fprintf(t, "page %d of %d, %d executions; the next is ?page=%d\n", v.Page, v.Pages, v.Matched, v.Page%v.Pages+1)
		}
	}
	if len(v.Recent) > 0 {
		fmt.Fprint(t, "\nENDED\tTOOL\tOUTCOME\tELAPSED\tLONGEST SILENCE\tBEATS\tERROR, LEFTOVERS\n")
		for _, r := range v.Recent {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, texts.Line(name(r.Tool)), r.Outcome+wouldText(&r), r.Elapsed, r.LongestGap, r.Beats, strings.TrimSpace(texts.Line(r.Error+" "+r.Leftovers)))
		}
	}
	return t.Flush()
}

// writeOneText writes the page of one execution as text for a terminal.
func writeOneText(w io.Writer, r *row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"id", fmt.Sprint(r.ID)}, {"tool", texts.Line(name(r.Tool))}, {"state", withClosing(r)}, {"outcome", r.Outcome}, {"started", r.Start.Format(time.RFC3339)},
		{"elapsed", r.Elapsed.String()}, {"total limit", limitText(r.Total)}, {"silent", r.Silent.String()}, {"idle limit", limitText(r.Idle)},
		{"longest silence", r.LongestGap.String()}, {"heartbeats", fmt.Sprint(r.Beats)}, {"limits", observedText(r)}, {"detail", texts.Line(r.Detail)}, {"error", texts.Line(r.Error)},
		{"leftovers", texts.Line(r.Leftovers)},
	} {
		if line[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
		}
	}
	if err := t.Flush(); err != nil || r.Stack == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Stack)
	return err
}

func withClosing(r *row) string {
	if r.Closing {
		return r.State + ", closing"
	}
	return r.State
}

func stateText(r *row) string {
	state := withClosing(r)
	if r.Observed && r.WouldStop == "" {
		return state + " (only observed)"
	}
	return state + wouldText(r)
}

func wouldText(r *row) string {
	if r.WouldStop == "" {
		return ""
	}
	return fmt.Sprintf(" (only observed; %s after %s)", r.WouldStop, r.WouldStopAt)
}

// observedText describes limits that are not enforced, or returns "" if they are enforced.
func observedText(r *row) string {
	switch {
	case !r.Observed:
		return ""
	case r.WouldStop == "":
		return "only observed; none would have stopped it so far"
	}
	return fmt.Sprintf("only observed; the %s would have stopped it after %s", r.WouldStop, r.WouldStopAt)
}

func limitText(limit millis) string {
	if limit == 0 {
		return "none"
	}
	return limit.String()
}
