package stream

import (
	"cmp"
	"time"
)

// The limits of a model that thinks, and of one that does not. Healthy streams of models that think were silent for
// 8.5 min, or had nothing but keep-alives for as long.
const (
	thinkingLimit = 15 * time.Minute
	quickFirst    = 5 * time.Minute
	quickIdle     = 2 * time.Minute
)

// ModelLimits are the limits of the streams of a language model. The zero ModelLimits are those of a model that thinks.
type ModelLimits struct {
	// Quick says that the model answers without thinking first, or shows its thoughts as they come.
	Quick bool
	// First is the longest allowed wait for the first sign of life. 0 means 15 min, or 5 min if Quick is set, and a
	// negative value means no limit.
	First time.Duration
	// Idle is the longest allowed time between two signs of life. 0 means 15 min, or 2 min if Quick is set, and a
	// negative value means no limit.
	Idle time.Duration
}

// Transport returns a Transport with these limits, for which only events with data count, and no keep-alive; see
// [DataEvent]. All of its fields may be changed before it is used.
func (l ModelLimits) Transport() *Transport {
	first, idle := thinkingLimit, thinkingLimit
	if l.Quick {
		first, idle = quickFirst, quickIdle
	}
	return &Transport{First: cmp.Or(l.First, first), Idle: cmp.Or(l.Idle, idle), Life: DataEvent}
}

// Models returns a Transport for the streams of language models, such as those that the SDKs of
// OpenAI and Anthropic read: the Transport of the zero [ModelLimits], with 15 min for the first event and between two.
//
// A model that thinks may be silent for minutes, or send only keep-alives, and so may one that is stuck: nothing but
// the time tells them apart. For a model that does not think, ModelLimits{Quick: true} finds a stuck stream sooner. For an
// answer that comes in one piece, First covers all of the time until the answer begins.
func Models() *Transport { return ModelLimits{}.Transport() }
