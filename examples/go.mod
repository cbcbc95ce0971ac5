module github.com/tooldeadline/tooldeadline/examples

go 1.25.0

require github.com/tooldeadline/tooldeadline v0.0.0

require github.com/benbjohnson/clock v1.3.5 // indirect

replace github.com/tooldeadline/tooldeadline => ../
