package stream

import "time"

// Models returns a Transport for the streams of language models, such as those that the SDKs of
// OpenAI and Anthropic read: 5 min for the first event, 2 min between two events, and only events
// with data count, see [DataEvent]. All of its fields may be changed before it is used.
//
// A model that thinks for longer without showing it needs a larger Idle. For an answer that comes
// in one piece, First covers all of the time until the answer begins.
func Models() *Transport {
	return &Transport{First: 5 * time.Minute, Idle: 2 * time.Minute, Life: DataEvent}
}
