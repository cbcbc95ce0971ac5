module github.com/tooldeadline/tooldeadline/cmd/deadline

go 1.25.0

require (
	github.com/creack/pty v1.1.24
	github.com/google/go-cmp v0.7.0
	github.com/spf13/pflag v1.0.10
	github.com/tooldeadline/tooldeadline v0.0.0
	golang.org/x/sys v0.47.0
)

replace github.com/tooldeadline/tooldeadline => ../../
