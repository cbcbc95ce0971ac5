package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const usage = `usage: mcpdeadline [flags] -- COMMAND [ARG...]
       mcpdeadline [flags] -url URL

An MCP server in front of the one that COMMAND is, or that listens at URL. It passes everything
on, and puts limits around the calls of tools.

`

// options are what the command line says.
type options struct {
	settings
	alive   signs
	keep    time.Duration // between keep-alive notifications
	ping    time.Duration // how long a server may take to answer a ping before it is killed
	declare bool          // the limits, in tools/list
	http    string        // address; empty is stdio
	inspect string        // address; empty is none
	log     string        // file; empty is none, "-" is stderr
	url     *url.URL
	header  http.Header // for url
	command []string    // where there is no url
}

// signs say what keeps the idle limit from firing.
type signs struct {
	progress, log, stderr bool
	work                  procgroup.Activity
}

const acceptedSigns = "any of progress, log, stderr, cpu, io, separated by commas"

func parseSigns(value string) (s signs, _ error) {
	for _, sign := range strings.Split(value, ",") {
		switch sign {
		case "progress":
			s.progress = true
		case "log":
			s.log = true
		case "stderr":
			s.stderr = true
		case "cpu":
			s.work.CPU = true
		case "io":
			s.work.IO = true
		default:
			return s, &settingError{"-alive", fmt.Sprintf("%q", value), acceptedSigns}
		}
	}
	if err := observable(s.work); err != nil {
		return s, &settingError{"-alive", fmt.Sprintf("%q", value), "progress, log or stderr: " + err.Error()}
	}
	return s, nil
}

// notInName reports what the name of a header cannot have.
func notInName(r rune) bool {
	return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// allSigns are those that there are on this system.
func allSigns() signs {
	s := signs{progress: true, log: true, stderr: true, work: procgroup.Activity{CPU: true, IO: true}}
	if observable(s.work) != nil {
		s.work = procgroup.Activity{}
	}
	return s
}

func parse(args []string, stderr io.Writer) (o *options, _ error) {
	o = &options{settings: settings{tools: make(map[string]limits)}, alive: allSigns(), keep: heartbeat.DefaultInterval, header: make(http.Header)}
	f := flag.NewFlagSet("mcpdeadline", flag.ContinueOnError)
	f.SetOutput(io.Discard)

	// What the flags say goes before what the file says, wherever it stands.
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
	config := f.String("config", "", "read limits from this JSON `file`; flags go before it")
	f.Func("host", "keep the total below the limit of this `host`: "+hostNames(), then(func(value string) error { return o.setHost("-host", value) }))
	duration("total", fmt.Sprintf("the `longest` that a call may take in all (default %v)", timeout.Default().Total), &o.all.total)
	duration("idle", fmt.Sprintf("the `longest` that a call may be without a sign of life (default %v)", timeout.Default().Idle), &o.all.idle)
	duration("grace", fmt.Sprintf("how `long` the server may take to answer a call that is cancelled (default %v)", timeout.DefaultGrace), &o.all.grace)
	duration("soft", "after how `long` a call is answered with a handle, and runs on: a task where the host knows tasks, else a result that says how to wait (default never)", &o.all.soft)
	f.Func("tool", "the limits of one tool, as `NAME:total=1h,idle=5m`; may be given again", then(o.setTool))
	alive := ""
	f.Func("alive", "what is a sign of life, as `signs` separated by commas: progress, log, stderr, cpu, io (default all that there are)", then(func(value string) (err error) {
		alive = value
		o.alive, err = parseSigns(value)
		return err
	}))
	var keep, ping *time.Duration
	duration("keep-alive", "the `time` between two notifications that a call goes on; 0 is none (default 10s)", &keep)
	duration("ping", "how `long` a server that does not answer a cancelled call may take to answer a ping before it is killed; 0 is for ever (default 5s)", &ping)
	f.BoolVar(&o.declare, "declare", true, "state the limits of each tool in the list of tools")
	f.StringVar(&o.http, "http", "", "serve Streamable HTTP at this `address`, on 127.0.0.1 where it names no host, instead of stdin and stdout")
	f.StringVar(&o.inspect, "inspect", "", "show what runs, to browsers of this machine, at http://`address`/debug/tools")
	f.StringVar(&o.log, "log", "", "append a line of JSON for each call to this `file`; - is stderr")
	f.Func("url", "the `URL` of a server with Streamable HTTP", then(func(value string) (err error) {
		if o.url, err = url.Parse(value); err != nil || o.url.Host == "" || o.url.Scheme != "http" && o.url.Scheme != "https" {
			return &settingError{"-url", fmt.Sprintf("%q", value), "a URL such as http://127.0.0.1:8137/mcp"}
		}
		return nil
	}))
	f.Func("header", "send this `NAME: VALUE` to -url; $NAME and ${NAME} are variables of the environment; may be given again", then(func(value string) error {
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
			return &settingError{"-header", fmt.Sprintf("%q", value), "variables that the environment has; there is no " + missing}
		}
		if strings.ContainsFunc(text, unicode.IsControl) {
			return &settingError{"-header", fmt.Sprintf("%q", value), "a value on one line, also with its variables"}
		}
		o.header.Add(name, text)
		return nil
	}))

	// flag takes "--" for the end of its own, and what follows for arguments, as it should: but
	// then "mcpdeadline server" would be a command too, and a flag after it the command's.
	own, command := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		own, command = args[:i], args[i+1:]
	}
	switch err := f.Parse(own); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		f.SetOutput(stderr)
		f.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see -help", err)
	case f.NArg() > 0:
		return nil, &settingError{"argument", fmt.Sprintf("%q", f.Arg(0)), "a command after --, as in mcpdeadline [flags] -- COMMAND [ARG...]"}
	}
	var empty error
	f.Visit(func(given *flag.Flag) {
		if value, ok := given.Value.(flag.Getter); ok && value.Get() == "" { // such as that of a variable that is not set
			empty = &settingError{"-" + given.Name, `""`, "a value, or no such flag"}
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
		return nil, errors.New("want a server, either -- COMMAND [ARG...] or -url URL; see -help")
	case len(o.header) > 0 && o.url == nil:
		return nil, errors.New("-header: there is no -url to send it to")
	case o.url != nil && !o.alive.progress && !o.alive.log:
		return nil, &settingError{"-alive", fmt.Sprintf("%q", alive), "progress or log, which are all that comes from a -url"}
	}
	if keep != nil {
		o.keep = *keep
	}
	if o.ping = 5 * time.Second; ping != nil {
		o.ping = *ping
	}
	return o, nil
}
