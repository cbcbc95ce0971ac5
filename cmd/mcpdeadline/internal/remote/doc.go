// Package remote implements a run of a server at a URL, over Streamable HTTP. It sends messages in order, assigns
// answers to requests, follows redirects to the same origin, and begins a new session when the server no longer knows
// the old one.
package remote
