module github.com/tooldeadline/tooldeadline/examples

go 1.25.0

require (
	github.com/creack/pty v1.1.24
	github.com/google/go-cmp v0.7.0
	github.com/google/jsonschema-go v0.4.3
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/spf13/pflag v1.0.10
	github.com/tooldeadline/tooldeadline v0.0.0
	github.com/tooldeadline/tooldeadline/progress/mcpsdk v0.0.0
	github.com/vbauerster/mpb/v8 v8.9.3
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.42.0
	golang.org/x/term v0.40.0
	google.golang.org/grpc v1.81.0
)

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/acarl005/stripansi v0.0.0-20180116102854-5a71ef0e047d // indirect
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/net v0.51.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260226221140-a57be14db171 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace (
	github.com/tooldeadline/tooldeadline => ../
	github.com/tooldeadline/tooldeadline/progress/mcpsdk => ../progress/mcpsdk
)
