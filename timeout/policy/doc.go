// Package policy has the limits of tools: one default, limits of each tool, and what the environment and
// a request may change.
//
//	p := &policy.Policy{Tools: map[string]policy.Tool{
//		"search": {Limits: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, Env: "SEARCH"},
//	}}
//	err := timeout.Run(ctx, search, p.For("search", 0)...)
//
// # Guarantees
//
//  1. The total is the first of these that is given: the request's, up to the tool's ceiling; the tool's
//     environment variable; the policy's; the tool's limits; the policy's default; the process default.
//     The idle limit is the first of the policy's variable, the tool's limits, the policy's default and
//     the process default.
//  2. A limit of 0 is off, wherever it comes from, and a nil *timeout.Config is not given.
//  3. A value that cannot be read is an error that names its key, the value and what is accepted; the
//     function is not called.
//  4. A value that is clamped or doubtful is logged to the policy's logger.
//
// All functions and methods are safe for concurrent use.
package policy
