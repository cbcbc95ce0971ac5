package stream

import "time"

// thinkingLimit is the idle limit for models that think. Healthy streams of such models were silent, or sent nothing
// but keep-alives, for up to 8.5 min.
const thinkingLimit = 15 * time.Minute

// Models returns a Transport for the streams of language models, such as those that the SDKs of OpenAI and Anthropic
// read. Its First and its Idle are 15 min, and only events with data that are no keep-alives renew them; see
// [DataEvent]. All of its fields may be changed before it is used.
//
// A model that thinks may be silent for minutes, or send only keep-alives, and so may a model that is stuck: only the
// time distinguishes them. For a model that does not think, or sends its thoughts as they come, a First of 5 min and
// an Idle of 2 min find a stuck stream sooner. If an answer comes in one piece, First covers the whole time until the
// answer begins.
func Models() *Transport {
	return &Transport{First: thinkingLimit, Idle: thinkingLimit, Life: DataEvent}
}
