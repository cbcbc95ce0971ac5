package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const usage = `Usage: mcpdeadline [FLAG]... -- COMMAND [ARG]...
  or:  mcpdeadline [FLAG]... -url URL
Start the MCP server COMMAND, or connect to the one at URL, and serve everything that it offers,
with limits on each tool call.

`

const exitStatus = `
DURATION is a Go duration such as 90s or 1h30m. 0 is no limit.

Exit status:
  0    if the host has disconnected, or after a signal
  1    if mcpdeadline itself fails
  2    if a flag or the configuration is wrong
  126  if COMMAND is found but cannot be executed
  127  if COMMAND is not found
  -    the exit status of COMMAND if it ends before it sends anything

Examples:
  mcpdeadline -- npx -y @modelcontextprotocol/server-filesystem /home/me/notes
        answer each call before the host gives up on it, if the host is a known one
  mcpdeadline -host zed -soft 40s -total 2h -- ./server
        calls may take 2 hours, though Zed waits for one minute
  mcpdeadline -idle 1m -tool build:total=1h,idle=10m -url http://127.0.0.1:8137/mcp
        limits on a server that runs already
`

// options holds the settings of the command line.
type options struct {
	settings
	alive   alive.Signs
	ping    time.Duration // time to answer a ping, after which the server is killed
	declare bool          // declare the limits in tools/list
	http    string        // address to serve at; empty means stdio
	inspect string        // address of the page of running calls; empty means no page
	log     string        // file of the call log; empty means no log, "-" is stderr
	hostPID int           // process whose end ends the program; 0 means none; see host.Watch
	url     *url.URL
	header  http.Header // sent to url
	command []string    // empty if there is a url
}

const acceptedSigns = "progress, log, stderr, notify, cpu or io, separated by commas"

func parseSigns(value string) (s alive.Signs, _ error) {
	signs := map[string]*bool{
		"progress": &s.Progress, "log": &s.Log, "stderr": &s.Stderr, "notify": &s.Notify, "cpu": &s.Work.CPU, "io": &s.Work.IO,
	}
	for _, name := range strings.Split(value, ",") {
		if signs[name] == nil {
			return s, &settingError{"-alive", fmt.Sprintf("%q", value), acceptedSigns}
		}
		*signs[name] = true
	}
	if err := alive.CanObserve(s.Work); err != nil {
		return s, &settingError{"-alive", fmt.Sprintf("%q", value), "progress, log or stderr: " + err.Error()}
	}
	if s.Notify && runtime.GOOS == "windows" {
		return s, &settingError{"-alive", fmt.Sprintf("%q", value), "progress, log, stderr, cpu or io: this system has no such sockets"}
	}
	return s, nil
}

// notInName reports whether r is not allowed in the name of a header.
func notInName(r rune) bool {
	return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// allSigns returns the signs of life that are the default: all that this system supports. Notify is not among them if
// NOTIFY_SOCKET is set: the proxy would replace the variable, and the server needs its value, such as a socket of
// systemd.
func allSigns() alive.Signs {
	s := alive.Signs{Progress: true, Log: true, Stderr: true, Notify: runtime.GOOS != "windows" && os.Getenv("NOTIFY_SOCKET") == "", Work: procgroup.Activity{CPU: true, IO: true}}
	if alive.CanObserve(s.Work) != nil {
		s.Work = procgroup.Activity{}
	}
	return s
}

// errVersion means that parse has printed the version.
var errVersion = errors.New("version requested")

// parse parses the command line and reads the configuration file. For -help it prints the help to stdout and returns
// flag.ErrHelp; for -version it prints the version and returns errVersion.
func parse(args []string, stdout io.Writer) (o *options, _ error) {
	o = &options{settings: settings{tools: make(map[string]limits)}, alive: allSigns(), hostPID: host.NotNamed, header: make(http.Header)}
	f := flag.NewFlagSet("mcpdeadline", flag.ContinueOnError)
	f.SetOutput(io.Discard)

	// Flags take precedence over the file at any position, so they are applied after the file has been read.
	var later []func() error
	then := func(set func(string) error) func(string) error {
		return func(value string) error {
			later = append(later, func() error { return set(value) })
			return nil
		}
	}
	duration := func(name, text string, to **time.Duration) {
		f.Func(name, text, then(func(value string) error {
			d, err := parseDuration("-"+name, value)
			*to = &d
			return err
		}))
	}
	config := f.String("config", "", "read limits from this JSON `FILE`; flags take precedence")
	f.Func("host", "suit this `HOST`: "+hostNames()+"; NAME=DURATION if you have set its limit on a call (default the host that says its name)", then(func(value string) error { return o.setHost("-host", value) }))
	duration("total", fmt.Sprintf("total limit of a call, a `DURATION` (default %v)", timeout.Default().Total), &o.all.total)
	duration("idle", fmt.Sprintf("longest `DURATION` of a call without a sign of life (default %v)", timeout.Default().Idle), &o.all.idle)
	duration("grace", fmt.Sprintf("`DURATION` that the server has to answer a cancelled call (default %v)", timeout.DefaultGrace), &o.all.grace)
	duration("soft", "`DURATION` after which a call is answered with a handle and runs on: with a task if the host supports tasks, otherwise with a result that says how to wait (default never)", &o.all.soft)
	f.Func("tool", "limits of one tool, such as `NAME:total=1h,idle=5m`; may be repeated", then(o.setTool))
	alive := ""
	f.Func("alive", "what counts as a sign of life, as `SIGN[,SIGN...]`: progress, log, stderr, notify, cpu, io (default all that the system supports)", then(func(value string) (err error) {
		alive = value
		o.alive, err = parseSigns(value)
		return err
	}))
	o.ping = 5 * time.Second
	ping := &o.ping
	duration("keep-alive", "`DURATION` between keep-alive notifications of a call; 0 sends none (default a third of the host's limit or of -total, at most 10s)", &o.keep)
	duration("ping", "`DURATION` that a server has to answer a ping if it does not answer a cancelled call, before it is killed; 0 never kills it (default 5s)", &ping)
	f.BoolVar(&o.declare, "declare", true, "declare the limits of each tool in the list of tools")
	f.StringVar(&o.http, "http", "", "serve Streamable HTTP at this `ADDRESS` instead of stdin and stdout; without a host it is on 127.0.0.1")
	f.StringVar(&o.inspect, "inspect", "", "show running calls to browsers on this machine, at http://`ADDRESS`/debug/tools")
	f.StringVar(&o.log, "log", "", "append a line of JSON for each call to this `FILE`; - is stderr")
	f.Func("host-pid", "end when the process with this `PID` ends; 0 ends with stdin only (default the process at the other end of stdin)", then(func(value string) (err error) {
		if o.hostPID, err = strconv.Atoi(value); err != nil || o.hostPID < 0 {
			return &settingError{"-host-pid", fmt.Sprintf("%q", value), "the id of a process, or 0"}
		}
		return nil
	}))
	f.Func("url", "`URL` of a server that speaks Streamable HTTP", then(func(value string) (err error) {
		if o.url, err = url.Parse(value); err != nil || o.url.Host == "" || o.url.Scheme != "http" && o.url.Scheme != "https" {
			return &settingError{"-url", fmt.Sprintf("%q", value), "a URL such as http://127.0.0.1:8137/mcp"}
		}
		return nil
	}))
	f.Func("header", "send the header `NAME: VALUE` to -url; $NAME and ${NAME} are replaced from the environment; may be repeated", then(func(value string) error {
		name, text, found := strings.Cut(value, ":")
		if !found || name == "" || strings.ContainsFunc(name, notInName) {
			return &settingError{"-header", fmt.Sprintf("%q", value), `NAME: VALUE, such as "Authorization: Bearer $TOKEN"`}
		}
		missing := ""
		text = strings.TrimSpace(os.Expand(text, func(variable string) string {
			value, ok := os.LookupEnv(variable)
			if !ok {
				missing = variable
			}
			return value
		}))
		if missing != "" {
			return &settingError{"-header", fmt.Sprintf("%q", value), "variables that are set; " + missing + " is not"}
		}
		if strings.ContainsFunc(text, unicode.IsControl) {
			return &settingError{"-header", fmt.Sprintf("%q", value), "a value on one line after its variables are replaced"}
		}
		o.header.Add(name, text)
		return nil
	}))

	version := f.Bool("version", false, "print the version and exit")

	// The arguments are split at "--" first, so that a command without "--" is an error. Package flag would accept it,
	// and stop parsing flags there.
	own, command := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		own, command = args[:i], args[i+1:]
	}
	switch err := f.Parse(own); {
	case errors.Is(err, flag.ErrHelp):
		f.Bool("help", false, "print this help and exit") // for PrintDefaults; Parse needs no such flag
		fmt.Fprint(stdout, usage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		fmt.Fprint(stdout, exitStatus)
		return nil, err
	case err != nil:
		return nil, err
	case *version:
		fmt.Fprint(stdout, versionText("mcpdeadline"))
		return nil, errVersion
	case f.NArg() > 0:
		return nil, &settingError{"argument", fmt.Sprintf("%q", f.Arg(0)), "a command after --, as in mcpdeadline [FLAG]... -- COMMAND [ARG]..."}
	}
	var empty error
	f.Visit(func(given *flag.Flag) {
		if value, ok := given.Value.(flag.Getter); ok && value.Get() == "" { // usually an unset variable in a shell
			empty = &settingError{"-" + given.Name, `""`, "a value, or leave the flag out"}
		}
	})
	if empty != nil {
		return nil, empty
	}
	if *config != "" {
		if err := o.readFile(*config); err != nil {
			return nil, err
		}
	}
	for _, set := range later {
		if err := set(); err != nil {
			return nil, err
		}
	}
	switch o.command = command; {
	case (o.url == nil) == (len(command) == 0):
		return nil, errors.New("want one server, either -- COMMAND [ARG]... or -url URL")
	case o.hostPID != host.NotNamed && o.http != "":
		return nil, errors.New("-host-pid: want no -http, with which hosts come and go")
	case len(o.header) > 0 && o.url == nil:
		return nil, errors.New("-header: want -url too, the server to send it to")
	case o.url != nil && !o.alive.Progress && !o.alive.Log:
		return nil, &settingError{"-alive", fmt.Sprintf("%q", alive), "progress or log, the only signs of a server at a -url"}
	}
	o.ping = *ping
	return o, nil
}
