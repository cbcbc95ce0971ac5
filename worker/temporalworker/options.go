package temporalworker

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options holds the settings of an [Interceptor]. The zero Options means the defaults.
type Options struct {
	// Policy sets other limits by the name of the activity type, which is also the name of the execution. The Default
	// of the Policy is for all other types. A total and a ceiling (MaxTotal) can only shorten the total of the
	// activity's options. The idle limit may be longer than the HeartbeatTimeout. If a limit is 0 or not set, the limit
	// of the activity's options applies. Since [policy.Parse] fills in missing limits from the process default,
	// unmarshal a file into a Policy whose Default is an empty Config.
	//
	// The variables MCP_TIMEOUT and MCP_IDLE_TIMEOUT, which are for MCP servers, are not read, but
	// variables that the policy names are. If the value of a variable is invalid, the activity fails with
	// a *timeout.ConfigError.
	//
	// With ObserveOnly, a heartbeat is sent only if the activity has had a heartbeat since the last one, so that the
	// service detects a stuck activity as it does without the interceptor. A nil Policy means the limits of the
	// activity's options.
	Policy *policy.Policy
	// DataConverter is the client's converter without its codecs: the parent of converter.NewCodecDataConverter. It
	// encodes recorded details that are sent again, details of package heartbeat, and the partial result of a stopped
	// activity, to find its size; what it cannot encode is not sent. The client's own converter
	// encodes details when an activity records them. Both must support converter.RawValue, as the SDK's converters do.
	// nil means the SDK's default.
	DataConverter converter.DataConverter
	// Logger receives the records of each execution, see [timeout.WithLogger], and warnings about details that could
	// not be kept or sent. The log has the whole stack of a stuck activity; the service gets only the beginning. An
	// activity waits for Logger for at most 1 s per record, and while 16 records are being written, further ones are
	// dropped. nil means no logging.
	Logger *slog.Logger
}

// A settings holds Options with the defaults filled in.
type settings struct {
	Options
	log logger // writes to Logger in bounded time
}

func newSettings(o Options) *settings {
	if o.DataConverter == nil {
		o.DataConverter = converter.GetDefaultDataConverter()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &settings{Options: o, log: logger{to: o.Logger}}
}

func (s *settings) warn(ctx context.Context, info *activity.Info, what string, args ...any) {
	s.log.write(func(l *slog.Logger) {
		l.WarnContext(ctx, what, append([]any{"activity", info.ActivityType.Name,
			"workflow", info.WorkflowExecution.ID, "id", info.ActivityID, "attempt", info.Attempt}, args...)...)
	})
}
