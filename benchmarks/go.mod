module github.com/tooldeadline/tooldeadline/benchmarks

go 1.25.0

require github.com/tooldeadline/tooldeadline v0.0.0

require golang.org/x/sys v0.40.0 // indirect

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	golang.org/x/perf v0.0.0-20260112171951-5abaabe9f1bd
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/failsafe-go/failsafe-go v0.9.8
)

replace github.com/tooldeadline/tooldeadline => ../
