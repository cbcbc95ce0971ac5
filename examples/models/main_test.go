package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// tries is how often a stream is asked for that a busy machine may have held up for longer than a limit.
const tries = 4

func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for n := 1; !run(t.Context(), &out, true); n++ {
		if n == tries {
			t.Error("a stream did not end as it should")
			break
		}
		out.Reset()
	}
	t.Log("\n" + out.String())
}

// SPEC 9.2, 9.3: with the SDKs themselves, each kind of stall is found by the right limit, the error
// says where, and the text that arrived is kept.
func TestStalls(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(models())
	t.Cleanup(server.Close)
	for _, tc := range []struct {
		mode     string
		words    int
		whole    bool
		first    bool // it is the first event that does not come
		ignored  bool
		onlyWith string // the SDK for which it is a stall, if not for both
	}{
		{mode: beforeHeader, first: true},
		{mode: beforeFirst, first: true, ignored: true},
		{mode: behindPings, first: true, ignored: true},
		{mode: betweenTokens, words: half},
		{mode: behindComment, words: half, ignored: true},
		{mode: behindPing, words: half, ignored: true},
		{mode: afterTheLast, words: words, whole: true, onlyWith: "Anthropic"},
	} {
		for sdk, ask := range asks {
			t.Run(tc.mode+" "+sdk, func(t *testing.T) {
				t.Parallel()
				got, err := ask(t.Context(), server.URL+"/"+tc.mode, limited())
				for n := 1; n < tries && len(strings.Fields(got.text)) < tc.words; n++ { // stopped too early
					got, err = ask(t.Context(), server.URL+"/"+tc.mode, limited())
				}
				if n := len(strings.Fields(got.text)); n != tc.words || got.whole != tc.whole {
					t.Errorf("%d words, whole %t", n, got.whole)
				}
				if tc.onlyWith != "" && sdk != tc.onlyWith {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var silent *stream.SilenceError
				if !errors.As(err, &silent) || !errors.Is(err, timeout.ErrIdle) {
					t.Fatal(err)
				}
				want := 2 * time.Second
				if tc.first {
					want = 3 * time.Second
				}
				if (silent.Events == 0) != tc.first || (silent.Ignored > 0) != tc.ignored || silent.Stop.Limit != want || silent.Events < tc.words {
					t.Error(silent)
				}
			})
		}
	}
}

// What the README says of the SDKs' own limits: each of these ends a stream that is healthy, and the
// idle limit does not.
func TestRequestTimeoutsEndHealthyStreams(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(models())
	t.Cleanup(server.Close)
	url := server.URL + "/" + healthy
	const short = 1500 * time.Millisecond // the stream takes 3
	openAI := func(ctx context.Context, opts ...option.RequestOption) (n int, err error) {
		client := openai.NewClient(append([]option.RequestOption{option.WithBaseURL(url + "/v1/"), option.WithAPIKey("none")}, opts...)...)
		events := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
			Model: "local", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Count.")},
		})
		defer events.Close()
		for events.Next() {
			n++
		}
		return n, events.Err()
	}
	claude := func(ctx context.Context, opts ...anthropicoption.RequestOption) (n int, err error) {
		client := anthropic.NewClient(append([]anthropicoption.RequestOption{anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none")}, opts...)...)
		events := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
			Model: "local", MaxTokens: 1024, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Count."))},
		})
		defer events.Close()
		for events.Next() {
			n++
		}
		return n, events.Err()
	}
	for _, tc := range []struct {
		name   string
		ask    func() (int, error)
		killed bool
	}{
		{"OpenAI WithRequestTimeout", func() (int, error) { return openAI(t.Context(), option.WithRequestTimeout(short)) }, true},
		{"OpenAI http.Client.Timeout", func() (int, error) {
			return openAI(t.Context(), option.WithHTTPClient(&http.Client{Timeout: short}))
		}, true},
		{"OpenAI context.WithTimeout", func() (int, error) {
			ctx, cancel := context.WithTimeout(t.Context(), short)
			defer cancel()
			return openAI(ctx)
		}, true},
		{"OpenAI stream.Models", func() (int, error) { return openAI(t.Context(), option.WithHTTPClient(limited())) }, false},
		{"OpenAI defaults", func() (int, error) { return openAI(t.Context()) }, false},
		{"Anthropic WithRequestTimeout", func() (int, error) { return claude(t.Context(), anthropicoption.WithRequestTimeout(short)) }, true},
		{"Anthropic http.Client.Timeout", func() (int, error) {
			return claude(t.Context(), anthropicoption.WithHTTPClient(&http.Client{Timeout: short}))
		}, true},
		{"Anthropic context.WithTimeout", func() (int, error) {
			ctx, cancel := context.WithTimeout(t.Context(), short)
			defer cancel()
			return claude(ctx)
		}, true},
		{"Anthropic stream.Models", func() (int, error) { return claude(t.Context(), anthropicoption.WithHTTPClient(limited())) }, false},
		{"Anthropic defaults", func() (int, error) { return claude(t.Context()) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n, err := tc.ask()
			for try := 1; try < tries && (tc.killed && (n == 0 || err == nil) || !tc.killed && errors.Is(err, timeout.ErrIdle)); try++ {
				n, err = tc.ask()
			}
			if tc.killed && (err == nil || n == 0 || n >= words) || !tc.killed && (err != nil || n < words) {
				t.Errorf("%d events, %v", n, err)
			}
			t.Log(n, err)
		})
	}
}

// What the README says of retries: unless they are off, an SDK that gets no header asks three times.
func TestRetries(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	handler := models()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	transport := stream.Models()
	transport.First = 5 * time.Second // within which the request gets there
	client := openai.NewClient(option.WithBaseURL(server.URL+"/"+beforeHeader+"/v1/"), option.WithAPIKey("none"),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	events := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "local"})
	if events.Next() || !errors.Is(events.Err(), timeout.ErrIdle) || asked.Load() != 3 {
		t.Errorf("%v after %d requests", events.Err(), asked.Load())
	}
}
