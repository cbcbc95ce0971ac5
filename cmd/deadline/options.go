package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// options holds the settings of the command line.
type options struct {
	total, idle, killAfter time.Duration  // 0 means none
	signal                 syscall.Signal // sent when a limit is reached
	foreground             bool
	preserveStatus         bool
	verbose                bool
	stacks                 bool     // programs write their stacks before a limit stops them
	beat                   bool     // send a heartbeat, with the command as its detail
	alive                  signs    // what renews the idle limit
	command                []string // with its arguments; never empty, except with beat
}

// given is the argument that pflag passes for an option without an argument.
const given = "\x00"

// newFlags returns the flags, which set the fields of o as they are parsed. The first error, --help or --version on the
// command line therefore takes precedence, as with getopt.
func newFlags(o *options) *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SetInterspersed(false) // options after COMMAND belong to the command
	with := func(name, short string, set func(string) error) { f.FuncP(name, short, "", set) }
	without := func(name, short string, set func() error) {
		with(name, short, func(s string) error {
			if s != given {
				return usageError("option '--" + name + "' doesn't allow an argument")
			}
			return set()
		})
		f.Lookup(name).NoOptDefVal = given
	}
	duration := func(d *time.Duration) func(string) error {
		return func(s string) (err error) {
			*d, err = parseDuration(s)
			return err
		}
	}
	on := func(b *bool) func() error {
		return func() error {
			*b = true
			return nil
		}
	}

	with("kill-after", "k", duration(&o.killAfter))
	with("signal", "s", func(s string) (err error) {
		o.signal, err = parseSignal(s)
		return err
	})
	without("preserve-status", "p", on(&o.preserveStatus))
	without("foreground", "f", on(&o.foreground))
	without("verbose", "v", on(&o.verbose))
	without("help", "", func() error { return errHelp })
	without("version", "", func() error { return errVersion })
	with("idle", "", duration(&o.idle))
	with("alive", "", func(s string) (err error) {
		notices := o.alive.notices
		o.alive, err = parseSigns(s)
		o.alive.notices = notices
		return err
	})
	without("stacks", "", on(&o.stacks))
	without("notify", "", on(&o.alive.notices))
	without("beat", "", on(&o.beat))

	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if c := candidates(name); len(c) == 1 {
			name = c[0]
		}
		return pflag.NormalizedName(name)
	})
	return f
}

// gnuOptions and ourOptions are the long options in the order in which GNU timeout would list them.
var (
	gnuOptions = []string{"foreground", "kill-after", "preserve-status", "signal", "verbose", "help", "version"}
	ourOptions = []string{"idle", "alive", "stacks", "notify", "beat"}
)

// candidates returns the long options that name may abbreviate. If options of GNU timeout are among them, it returns
// only these, so that an abbreviation means the same to both programs.
func candidates(name string) []string {
	if slices.Contains(ourOptions, name) || slices.Contains(gnuOptions, name) {
		return []string{name}
	}
	for _, options := range [][]string{gnuOptions, ourOptions} {
		var found []string
		for _, o := range options {
			if strings.HasPrefix(o, name) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// parse parses the arguments without the program's name. The error is a usageError, errHelp or errVersion.
func parse(args []string) (options, error) {
	o := options{signal: defaultSignal, alive: signs{output: true}}
	f := newFlags(&o)
	if err := f.Parse(args); err != nil {
		return o, asGNU(err, args)
	}
	rest := f.Args()
	if o.beat {
		if len(rest) > 1 {
			return o, usageError("extra operand " + quote(rest[1]))
		}
		o.command = rest
		return o, nil
	}
	if len(rest) < 2 {
		return o, usageError("")
	}
	o.command = rest[1:]
	var err error
	if o.total, err = parseDuration(rest[0]); err == nil && f.Changed("alive") && o.idle == 0 {
		err = usageError("option '--alive' needs '--idle'")
	}
	return o, err
}

// asGNU returns an error of pflag with the wording of getopt. It returns the error of a value unchanged.
func asGNU(err error, args []string) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &invalid):
		return invalid.Unwrap()
	case errors.As(err, &missing) && missing.GetSpecifiedShortnames() != "":
		return usageError("option requires an argument -- '" + missing.GetSpecifiedName() + "'")
	case errors.As(err, &missing):
		return usageError("option '--" + missing.GetFlag().Name + "' requires an argument")
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usageError("invalid option -- '" + unknown.GetSpecifiedName() + "'")
	case errors.As(err, &unknown):
		return unknownLong(unknown.GetSpecifiedName(), args)
	case errors.As(err, &syntax):
		return usageError("unrecognized option '" + syntax.GetSpecifiedFlag() + "'")
	case errors.Is(err, pflag.ErrHelp): // pflag's own -h
		return usageError("invalid option -- 'h'")
	default:
		return usageError(err.Error())
	}
}

func unknownLong(name string, args []string) error {
	i := slices.IndexFunc(args, func(a string) bool {
		return a == "--"+name || strings.HasPrefix(a, "--"+name+"=")
	})
	arg := "--" + name
	if i >= 0 {
		arg = args[i]
	}
	c := candidates(name)
	if len(c) < 2 {
		return usageError("unrecognized option '" + arg + "'")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "option '%s' is ambiguous; possibilities:", arg)
	for _, o := range c {
		fmt.Fprintf(&b, " '--%s'", o)
	}
	return usageError(b.String())
}
