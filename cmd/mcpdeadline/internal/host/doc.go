// Package host detects the end of the host: its process has ended, or it has closed stdin while earlier messages still
// wait to be read.
package host
