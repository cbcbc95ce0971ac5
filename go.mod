module github.com/tooldeadline/tooldeadline

go 1.25.0

require (
	github.com/benbjohnson/clock v1.3.5
	github.com/creack/pty v1.1.24
	github.com/google/go-cmp v0.7.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.40.0
)
