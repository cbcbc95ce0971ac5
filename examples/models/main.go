// Models reads streams of language models with the SDKs of OpenAI and Anthropic, and stops those that
// stall: before the response, before the first token, between two tokens, behind keep-alives, and
// after the last token. A server in this program plays the models.
//
//	go run ./examples/models
//
// For each stream it prints how many words came, whether the answer is whole, and the error. It takes
// about 5 seconds. The exit code is 0 if every stream ended as it should and all was printed, and 1 otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/stream"
)

func main() {
	server := httptest.NewServer(models())
	defer server.Close()
	if !run(context.Background(), server.URL, http.DefaultTransport, stdio.New(os.Stdout)) {
		os.Exit(1)
	}
}

// limited returns an HTTP client with limits for streams of models. The limits are shorter than those of the preset, so
// that this program ends soon.
func limited(base http.RoundTripper) *http.Client {
	transport := stream.Models()
	transport.Base = base
	transport.First, transport.Idle = 3*time.Second, 2*time.Second
	return &http.Client{Transport: transport}
}

// An answer holds what has arrived of a model's answer. After an error, it holds what came before the error.
type answer struct {
	text  string
	whole bool // the model has said that the answer ends here
}

// A result records how the stream of one model ended with one SDK.
type result struct {
	sdk, mode string
	answer
	err error
}

// asks has the SDKs, by name.
var asks = map[string]func(ctx context.Context, url string, client *http.Client) (answer, error){
	"OpenAI": askOpenAI, "Anthropic": askAnthropic,
}

// run sends a request to every kind of model with both SDKs, all at the same time. It returns whether all streams ended
// as expected and were printed.
func run(ctx context.Context, url string, base http.RoundTripper, out io.Writer) (ok bool) {
	results := make([]result, 0, len(modes)*len(asks))
	for _, mode := range modes {
		for _, sdk := range []string{"OpenAI", "Anthropic"} {
			results = append(results, result{sdk: sdk, mode: mode})
		}
	}
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			r := &results[i]
			r.answer, r.err = asks[r.sdk](ctx, url+"/"+r.mode, limited(base))
		})
	}
	all.Wait()

	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "model\tSDK\twords\twhole\terror")
	ok = true
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%d\t%t\t%s\n", r.mode, r.sdk, len(strings.Fields(r.text)), r.whole, reason(r.err))
		var silent *stream.SilenceError
		if stalls := r.mode != healthy && !(r.mode == afterTheLast && r.sdk == "OpenAI"); errors.As(r.err, &silent) != stalls {
			ok = false
		}
	}
	return table.Flush() == nil && ok
}

// reason returns the text of the stream.SilenceError in err, without the text that SDKs and net/http add, or else the
// text of err.
func reason(err error) string {
	var silent *stream.SilenceError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &silent):
		return silent.Error()
	}
	return err.Error()
}
