module github.com/tooldeadline/tooldeadline/progress/mcpgo

go 1.25.5

require (
	github.com/google/go-cmp v0.7.0
	github.com/mark3labs/mcp-go v1.2.1
	github.com/tooldeadline/tooldeadline v0.0.0
)

require (
	github.com/creack/pty v1.1.24 // indirect
	github.com/google/jsonschema-go v0.4.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/spf13/cast v1.7.1 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)

replace github.com/tooldeadline/tooldeadline => ../../
