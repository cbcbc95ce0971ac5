// Package toolcall runs tool calls in an MCP server: it applies the limits of the policy and the request, sends
// progress notifications, makes the result of a call that was stopped, and aborts a call whose client has disconnected.
// It depends on no SDK; the packages mcpsdk and mcpgo each connect it to one.
//
// A [Settings] holds the settings that all calls share, and [Do] runs one call:
//
//	server := &toolcall.Settings{Policy: policy}
//
//	// tools/call
//	result, err := toolcall.Do(ctx, server, toolcall.Call{
//		Tool: params.Name, Session: conn, Token: params.Meta["progressToken"],
//		Meta: params.Meta, Arguments: params.Arguments, Send: conn.notifyProgress,
//	}, tool)
//	if err != nil {
//		result.IsError = true
//		result.Text = toolcall.Text(err, result.Text)
//		if outcome, ok := toolcall.OutcomeOf(err); ok {
//			result.Meta[toolcall.OutcomeKey] = outcome
//		}
//	}
//
// [Drain] ends the calls when the server is shut down, so that each of them is answered.
//
// If a command of package procgroup was stopped, [Text] uses the message and the output of the command in place of the
// message of the execution. A call that returns with little of its total left has an [Outcome] too; see NearLimit of
// [Call].
//
// # Guarantees
//
//  1. A call ends at the latest a grace after its limit, whatever the tool does, and
//     notifications in flight add 200 ms at the most.
//  2. A request can change its limits only if the Settings allow it, and never beyond the tool's
//     MaxTotal. A value that is not valid is an error that says what is accepted, and the tool is
//     not called.
//  3. A panic, a runtime.Goexit and an error whose Error method panics end the call with an
//     error; they do not end the server.
//  4. Nothing is sent about a call after Do has returned, and nothing for a call within another
//     of the same session, which has the same token.
//  5. Nothing is left behind when Do has returned, except the goroutine of a tool that has not
//     returned.
//  6. When [Drain.Shutdown] has returned nil, every call that had begun before it has been
//     answered, and none has begun since.
//  7. A call whose client says how long it waits is stopped before that, unless it outlives its
//     answer, and never later than without.
package toolcall
