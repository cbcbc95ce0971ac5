// Package remote implements the runs of a server at a URL, over Streamable HTTP: how messages are sent, which answers
// belong to which request, which redirects are followed, and what is sent again when the server has forgotten the
// session.
package remote
