package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// pipes is a network in memory, on which a server listens and to which a client connects.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// asked runs a test in a bubble, with the models of this program on the other end of a transport.
func asked(t *testing.T, test func(t *testing.T, base http.RoundTripper, requests *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		network, requests, all := make(pipes), new(atomic.Int32), models()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			all.ServeHTTP(w, r)
		})}
		go server.Serve(network)
		base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			network <- there
			return here, nil
		}}
		test(t, base, requests)
		base.CloseIdleConnections()
		server.Close()
	})
}

const url = "http://models"

// What the program prints is what the README shows, but for what there takes time.
func TestRun(t *testing.T) {
	asked(t, func(t *testing.T, base http.RoundTripper, _ *atomic.Int32) {
		begun := time.Now()
		var out bytes.Buffer
		if !run(t.Context(), url, base, &out) || time.Since(begun) > 6*time.Second {
			t.Errorf("after %v:\n%s", time.Since(begun), &out)
		}
		readme, err := os.ReadFile("README.md")
		if err != nil {
			t.Fatal(err)
		}
		varies := regexp.MustCompile(`\d+(\.\d+)?s(, then \d+ chunks)?\b| +`)
		lines := make(map[string]bool)
		for line := range strings.Lines(out.String()) {
			lines[varies.ReplaceAllString(strings.TrimSpace(line), " ")] = true
		}
		shown := regexp.MustCompile(`(?m)^    (\S+ +(SDK|OpenAI|Anthropic) .*)$`).FindAllStringSubmatch(string(readme), -1)
		if len(shown) < 5 {
			t.Errorf("the README shows %q", shown)
		}
		for _, line := range shown {
			if !lines[varies.ReplaceAllString(line[1], " ")] {
				t.Errorf("not printed: %s\n%s", line[1], &out)
			}
		}
	})
}

// A full is a disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFullDisk(t *testing.T) {
	asked(t, func(t *testing.T, base http.RoundTripper, _ *atomic.Int32) {
		if run(t.Context(), url, base, full{}) {
			t.Error("no error")
		}
	})
}

// SPEC 9.2, 9.3: with the SDKs themselves, each kind of stall is found by the right limit, the error says where, and the
// text that arrived is kept.
func TestStalls(t *testing.T) {
	for _, tc := range []struct {
		mode    string
		words   int
		whole   bool
		first   bool // it is the first event that does not come
		ignored bool
		only    string // the SDK for which it is a stall, if not for both
		after   time.Duration
	}{
		{mode: beforeHeader, first: true, after: 3 * time.Second},
		{mode: beforeFirst, first: true, ignored: true, after: 3 * time.Second},
		{mode: behindPings, first: true, ignored: true, after: 3 * time.Second},
		{mode: betweenTokens, words: half, after: (half-1)*pace + 2*time.Second},
		{mode: behindComment, words: half, ignored: true, after: (half-1)*pace + 2*time.Second},
		{mode: behindPing, words: half, ignored: true, after: (half-1)*pace + 2*time.Second},
		{mode: afterTheLast, words: words, whole: true, only: "Anthropic", after: words*pace + 2*time.Second},
	} {
		for sdk, ask := range asks {
			t.Run(tc.mode+" "+sdk, func(t *testing.T) {
				asked(t, func(t *testing.T, base http.RoundTripper, _ *atomic.Int32) {
					begun := time.Now()
					got, err := ask(t.Context(), url+"/"+tc.mode, limited(base))
					took := time.Since(begun)
					if n := len(strings.Fields(got.text)); n != tc.words || got.whole != tc.whole {
						t.Errorf("%d words, whole %t", n, got.whole)
					}
					if tc.only != "" && sdk != tc.only {
						if err != nil {
							t.Error(err)
						}
						return
					}
					var silent *stream.SilenceError
					if !errors.As(err, &silent) || !errors.Is(err, timeout.ErrIdle) {
						t.Fatal(err)
					}
					if (silent.Events == 0) != tc.first || (silent.Ignored > 0) != tc.ignored || took != tc.after || silent.Events < tc.words {
						t.Errorf("%v after %v, want %v", silent, took, tc.after)
					}
				})
			})
		}
	}
}

// What the README says of the SDKs' own limits: each of these ends a stream that is healthy, and the idle limit does not.
// And unless they are off, an SDK that gets no header asks three times.
func TestRequestTimeoutsEndHealthyStreams(t *testing.T) {
	const short = 1500 * time.Millisecond // the stream takes 3 s
	openAI := func(ctx context.Context, mode string, client *http.Client, opts ...option.RequestOption) (n int, err error) {
		all := append([]option.RequestOption{option.WithBaseURL(url + "/" + mode + "/v1/"), option.WithAPIKey("none"), option.WithHTTPClient(client)}, opts...)
		c := openai.NewClient(all...)
		events := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
			Model: "local", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Count.")},
		})
		defer events.Close()
		for events.Next() {
			n++
		}
		return n, events.Err()
	}
	claude := func(ctx context.Context, client *http.Client, opts ...anthropicoption.RequestOption) (n int, err error) {
		all := append([]anthropicoption.RequestOption{anthropicoption.WithBaseURL(url + "/" + healthy), anthropicoption.WithAPIKey("none"), anthropicoption.WithHTTPClient(client)}, opts...)
		c := anthropic.NewClient(all...)
		events := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
			Model: "local", MaxTokens: 1024, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Count."))},
		})
		defer events.Close()
		for events.Next() {
			n++
		}
		return n, events.Err()
	}
	plain := func(base http.RoundTripper, limit time.Duration) *http.Client {
		return &http.Client{Transport: base, Timeout: limit}
	}
	for _, tc := range []struct {
		name   string
		ask    func(ctx context.Context, base http.RoundTripper) (int, error)
		killed bool
	}{
		{"OpenAI WithRequestTimeout", func(ctx context.Context, base http.RoundTripper) (int, error) {
			return openAI(ctx, healthy, plain(base, 0), option.WithRequestTimeout(short))
		}, true},
		{"OpenAI http.Client.Timeout", func(ctx context.Context, base http.RoundTripper) (int, error) {
			return openAI(ctx, healthy, plain(base, short))
		}, true},
		{"OpenAI context.WithTimeout", func(ctx context.Context, base http.RoundTripper) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, short)
			defer cancel()
			return openAI(ctx, healthy, plain(base, 0))
		}, true},
		{"OpenAI stream.Models", func(ctx context.Context, base http.RoundTripper) (int, error) {
			return openAI(ctx, healthy, limited(base))
		}, false},
		{"OpenAI defaults", func(ctx context.Context, base http.RoundTripper) (int, error) {
			return openAI(ctx, healthy, plain(base, 0))
		}, false},
		{"Anthropic WithRequestTimeout", func(ctx context.Context, base http.RoundTripper) (int, error) {
			return claude(ctx, plain(base, 0), anthropicoption.WithRequestTimeout(short))
		}, true},
		{"Anthropic http.Client.Timeout", func(ctx context.Context, base http.RoundTripper) (int, error) { return claude(ctx, plain(base, short)) }, true},
		{"Anthropic context.WithTimeout", func(ctx context.Context, base http.RoundTripper) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, short)
			defer cancel()
			return claude(ctx, plain(base, 0))
		}, true},
		{"Anthropic stream.Models", func(ctx context.Context, base http.RoundTripper) (int, error) { return claude(ctx, limited(base)) }, false},
		{"Anthropic defaults", func(ctx context.Context, base http.RoundTripper) (int, error) { return claude(ctx, plain(base, 0)) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked(t, func(t *testing.T, base http.RoundTripper, _ *atomic.Int32) {
				begun := time.Now()
				n, err := tc.ask(t.Context(), base)
				if took := time.Since(begun); tc.killed && (err == nil || n == 0 || n >= words || took != short) || !tc.killed && (err != nil || n < words) {
					t.Errorf("%d events, %v after %v", n, err, took)
				}
			})
		})
	}
	t.Run("retries", func(t *testing.T) {
		asked(t, func(t *testing.T, base http.RoundTripper, requests *atomic.Int32) {
			if _, err := openAI(t.Context(), beforeHeader, limited(base)); !errors.Is(err, timeout.ErrIdle) || requests.Load() != 3 {
				t.Errorf("%v after %d requests", err, requests.Load())
			}
		})
	})
}
