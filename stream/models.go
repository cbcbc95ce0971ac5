package stream

import "time"

// thinkingLimit is the limit of a model that thinks. Healthy streams of such models were silent for 8.5 min, or had
// nothing but keep-alives for as long.
const thinkingLimit = 15 * time.Minute

// Models returns a Transport for the streams of language models, such as those that the SDKs of OpenAI and Anthropic
// read. Its First and its Idle are 15 min, and only events with data count, and no keep-alive; see [DataEvent]. All of
// its fields may be changed before it is used.
//
// A model that thinks may be silent for minutes, or send only keep-alives, and so may one that is stuck: nothing but
// the time tells them apart. For a model that does not think, or shows its thoughts as they come, a First of 5 min and
// an Idle of 2 min find a stuck stream sooner. For an answer that comes in one piece, First covers all of the time
// until the answer begins.
func Models() *Transport {
	return &Transport{First: thinkingLimit, Idle: thinkingLimit, Life: DataEvent}
}
