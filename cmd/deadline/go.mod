module github.com/tooldeadline/tooldeadline/cmd/deadline

go 1.25.0

require (
	github.com/creack/pty v1.1.24
	github.com/google/go-cmp v0.7.0
	github.com/spf13/pflag v1.0.10
	github.com/tooldeadline/tooldeadline v0.0.0
	github.com/vbauerster/mpb/v8 v8.9.3
	golang.org/x/sys v0.47.0
	golang.org/x/term v0.45.0
)

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
)

replace github.com/tooldeadline/tooldeadline => ../../
