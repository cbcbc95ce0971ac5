module github.com/tooldeadline/tooldeadline/progress/mcpgo

go 1.25.5

require github.com/tooldeadline/tooldeadline v0.0.0

replace github.com/tooldeadline/tooldeadline => ../../
