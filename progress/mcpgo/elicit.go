package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// Elicit calls MCPServer.RequestElicitation under [progress.Await]: the idle check is held while the
// person is asked, keep-alive notifications have the message of the request, and the person has 30
// s to answer, or 120 s if the call has a progress token, unless wait sets other
// limits. An elicitation of mode "url" waits under [progress.AwaitReply], and the notifications
// name the site. Return the error from the tool unchanged: the client then gets a result with the
// text of [progress.ErrNoAnswer]. With [Serve] or [WrapHTTP], a question is cancelled at the client
// when the tool no longer waits for the answer.
//
// Elicit works only with clients before protocol 2026-07-28. With later clients a server cannot ask while
// a tool runs, and Elicit returns at once an error in which errors.Is finds
// server.ErrServerInitiatedRequestUnsupported. A tool that returns its question works with all
// clients; see "Asking a person" in the package documentation.
//
// If ctx is not from a call of a server, the error is server.ErrNoActiveSession.
func Elicit(ctx context.Context, request mcp.ElicitationRequest, wait progress.Wait) (*mcp.ElicitationResult, error) {
	s := server.ServerFromContext(ctx)
	if s == nil {
		return nil, server.ErrNoActiveSession
	}
	return adapter.Await(ctx, server.ClientSessionFromContext(ctx), string(mcp.MethodElicitationCreate), request.Params.Message, request.Params.URL, wait, func(ctx context.Context) (*mcp.ElicitationResult, error) {
		return elicit(ctx, s, request)
	})
}

// Sample calls MCPServer.RequestSampling under [progress.AwaitReply]: the idle check is held while the client's
// model answers, keep-alive notifications say so, and the model has 30 s to answer, or 120 s if the call has a
// progress token, unless wait sets other limits. RequestSampling itself does not hold the idle check. A request to
// the client for which this package has no function, such as MCPServer.RequestRoots, can wait in a function that you
// pass to [progress.AwaitReply].
//
// Sample works only with clients before protocol 2026-07-28, as [Elicit] does. If ctx is not from a call of a server,
// the error is server.ErrNoActiveSession.
func Sample(ctx context.Context, request mcp.CreateMessageRequest, wait progress.Wait) (*mcp.CreateMessageResult, error) {
	s := server.ServerFromContext(ctx)
	if s == nil {
		return nil, server.ErrNoActiveSession
	}
	return adapter.Await(ctx, server.ClientSessionFromContext(ctx), string(mcp.MethodSamplingCreateMessage), "", "", wait, func(ctx context.Context) (*mcp.CreateMessageResult, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		return s.RequestSampling(ctx, request)
	})
}

// elicit sends a question to the client, and waits for the answer. From protocol 2026-07-28 on it returns an error, as
// [Elicit] says. Over HTTP, the stream of a call ends when the call is answered with a handle. After that, if the
// client has no standalone stream open, elicit waits for a request that fetches the result, and sends the question on
// the stream of that request.
func elicit(ctx context.Context, s *server.MCPServer, request mcp.ElicitationRequest) (res *mcp.ElicitationResult, err error) {
	session := server.ClientSessionFromContext(ctx)
	if mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) {
		return s.RequestElicitation(ctx, request) // which refuses
	}
	err = adapter.TaskOf(ctx, session).Ask(ctx, func(id string, form task.Form, fetching func() (context.Context, error)) error {
		ctx := ctx
		if form == task.Legacy {
			request.Params.Meta = withField(request.Params.Meta, task.RelatedKey, map[string]any{"taskId": id})
		}
		if w := wireOf(ctx, session); id != "" && streamable(session) && w != nil && !w.streams.open(session.SessionID()) {
			fetch, err := fetching()
			if err != nil {
				return err
			}
			ctx = &borrowed{ctx, fetch}
		}
		res, err = cancellable(ctx, s, request)
		return err
	})
	return res, err
}

// cancellable sends a question to the client, and waits for the answer. If ctx ends first and there is a wire, it
// cancels the question at the client.
func cancellable(ctx context.Context, s *server.MCPServer, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	w := wireOf(ctx, server.ClientSessionFromContext(ctx))
	if w == nil {
		return s.RequestElicitation(ctx, request)
	}
	request, end := w.ask(request, func(params map[string]any) {
		_ = s.SendNotificationToClient(ctx, string(mcp.MethodNotificationCancelled), params)
	})
	res, err := s.RequestElicitation(ctx, request)
	if err != nil && ctx.Err() != nil {
		end(context.Cause(ctx).Error())
	} else {
		end("")
	}
	return res, err
}

// A borrowed is the context of a task with the values of another request of the same client, which take precedence.
type borrowed struct {
	context.Context
	values context.Context
}

func (b *borrowed) Value(key any) any {
	if v := b.values.Value(key); v != nil {
		return v
	}
	return b.Context.Value(key)
}
