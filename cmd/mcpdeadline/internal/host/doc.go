// Package host detects that the host has gone: its process has ended, or it has closed stdin behind messages that wait.
package host
