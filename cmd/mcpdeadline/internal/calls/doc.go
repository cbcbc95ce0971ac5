// Package calls connects hosts with servers in sessions: it handles each message, runs calls under their limits and
// lets them go on after their answer, and finds and restarts servers that hang.
package calls
