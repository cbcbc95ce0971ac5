// Package policy resolves the limits of a server's tools from a default, limits per tool, the environment
// and the request.
//
//	p := &policy.Policy{Tools: map[string]policy.Tool{
//		"search": {Limits: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, Env: "SEARCH"},
//	}}
//	err := timeout.Run(ctx, search, p.For("search", 0)...)
//
// [Parse] reads a policy from a file.
//
// # Guarantees
//
//  1. The total is the first of these that is given: the total that the request asks for, up to the tool's MaxTotal;
//     the tool's environment variable; the policy's environment variable; the tool's limits; the policy's default; the
//     process default. The idle limit is the first that is given of the policy's environment variable, the tool's
//     limits, the policy's default and the process default.
//  2. A limit of 0 is off, wherever it comes from. A nil *timeout.Config counts as not given.
//  3. For a value that cannot be read, the error names the key, the value and what is accepted, and the
//     function is not called.
//  4. A clamped or doubtful value is logged to the policy's logger.
//  5. A policy that is read from a file and written back is the same. A key that is not understood is an
//     error, except beside the key mcp.
//  6. A call takes all its limits from one policy, and keeps them when [Policy.Replace] changes the policy meanwhile.
//
// All functions and methods are safe for concurrent use.
package policy
