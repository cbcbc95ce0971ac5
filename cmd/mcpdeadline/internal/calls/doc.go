// Package calls has the sessions of hosts with servers: what happens to each message, how a call runs under its limits and
// goes on after its answer, and when a server is in doubt and started again.
package calls
