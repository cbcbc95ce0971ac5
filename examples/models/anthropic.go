package main

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// askAnthropic asks a model with the SDK of Anthropic. It returns what has arrived, even with an error.
func askAnthropic(ctx context.Context, url string, httpClient *http.Client) (got answer, err error) {
	client := anthropic.NewClient(
		option.WithBaseURL(url),
		option.WithAPIKey("none"),
		option.WithHTTPClient(httpClient),
		option.WithMaxRetries(0), // as in askOpenAI
	)
	events := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model:     "local",
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Count."))},
	})
	defer events.Close()
	var all anthropic.Message
	for events.Next() {
		if err := all.Accumulate(events.Current()); err != nil {
			return got, err
		}
		got = answer{whole: all.StopReason != ""}
		for _, block := range all.Content {
			got.text += block.Text
		}
	}
	return got, events.Err()
}
