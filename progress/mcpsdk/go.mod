module github.com/tooldeadline/tooldeadline/progress/mcpsdk

go 1.25.0

require github.com/tooldeadline/tooldeadline v0.0.0

replace github.com/tooldeadline/tooldeadline => ../../
