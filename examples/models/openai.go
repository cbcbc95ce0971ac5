package main

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// askOpenAI asks a model with the SDK of OpenAI. It returns what has arrived, even with an error.
func askOpenAI(ctx context.Context, url string, httpClient *http.Client) (answer, error) {
	client := openai.NewClient(
		option.WithBaseURL(url+"/v1/"),
		option.WithAPIKey("none"),
		option.WithHTTPClient(httpClient),
		// The SDK sends a request again whose response did not begin: 2 times unless told otherwise,
		// so that the limit for the first event would be three times as long.
		option.WithMaxRetries(0),
	)
	events := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:    "local",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Count.")},
	})
	defer events.Close()
	var all openai.ChatCompletionAccumulator
	for events.Next() {
		all.AddChunk(events.Current())
	}
	var got answer
	if len(all.Choices) > 0 {
		got = answer{text: all.Choices[0].Message.Content, whole: all.Choices[0].FinishReason != ""}
	}
	return got, events.Err()
}
