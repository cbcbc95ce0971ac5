module github.com/tooldeadline/tooldeadline/examples

go 1.25.0

require github.com/tooldeadline/tooldeadline v0.0.0

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	golang.org/x/sys v0.40.0 // indirect
)

replace github.com/tooldeadline/tooldeadline => ../
