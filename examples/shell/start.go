package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// limited is a script that limits the memory of each process and then runs the shell. A command can raise the limit,
// which is a soft limit, with ulimit.
const limited = `ulimit -c 0; ulimit -S -d "$1" 2>/dev/null; exec "$0" -c "$2"`

// command returns the command of a job, or an error if the input is invalid.
func (s *settings) command(in runInput) (*exec.Cmd, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return nil, errors.New("command is empty: want a command for the shell")
	case strings.ContainsRune(in.Command, 0):
		return nil, errors.New("command has a NUL character, which no command can have")
	case strings.ContainsRune(in.Dir, 0):
		return nil, errors.New("dir has a NUL character, which no path can have")
	}
	cmd := exec.Command(s.shell, "-c", in.Command)
	if s.memory > 0 {
		cmd = exec.Command("/bin/sh", "-c", limited, s.shell, strconv.FormatInt(s.memory>>10, 10), in.Command)
	}
	if cmd.Dir = s.dir; in.Dir != "" {
		if cmd.Dir = in.Dir; !filepath.IsAbs(in.Dir) {
			cmd.Dir = filepath.Join(s.dir, in.Dir)
		}
		if err := isDir(cmd.Dir); err != nil {
			return nil, fmt.Errorf("dir: %w", err)
		}
	}
	cmd.Env = append(cmd.Env, s.env...)
	if in.TTY {
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	}
	return cmd, nil
}

// start starts a command as a job. The limits of the command apply until its end, even after the call has ended.
func (d *desk) start(ctx context.Context, in runInput) (*job.Job, error) {
	cmd, err := d.command(in)
	if err != nil {
		return nil, err
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	j, err := d.jobs.Start(ctx, cmd, append(d.options(in),
		procgroup.Capture{Limit: d.output, Spill: d.files, SpillMax: d.spill},
		procgroup.WithOptions(timeout.WithName(name(in.Command))),
		procgroup.Limits{Total: seconds(in.TimeoutS), Idle: seconds(in.IdleS)})...)
	if err != nil {
		d.ended()
		d.watched.Done()
		d.logger.Error("not started", slog.String("command", in.Command), slog.Any("error", err))
		return nil, err
	}
	log := d.logger.With(slog.Int("job", j.ID))
	log.Info("start", slog.String("command", in.Command), slog.String("dir", cmd.Dir), slog.Int("pid", cmd.Process.Pid), slog.Bool("tty", in.TTY),
		slog.Float64("timeout_s", in.TimeoutS), slog.Float64("idle_s", in.IdleS))
	d.mu.Lock()
	d.told[j.ID] = &account{tty: in.TTY}
	d.mu.Unlock()
	d.forget()
	go func() {
		defer d.watched.Done()
		j.Wait(context.Background(), job.Until{})
		d.ended()
		r := j.Status().Result
		d.keepFile(j, r.Spill.Path)
		log.Info("end", slog.String("reason", r.Reason.Error()), slog.Int("exit_code", r.ExitCode),
			slog.Float64("seconds", r.Elapsed.Seconds()), slog.Int64("bytes", r.Combined.Total), slog.String("leftovers", r.Leftovers()))
	}()
	return j, nil
}

// options returns the options of a command that the client cannot choose, and the option for its terminal or input.
func (s *settings) options(in runInput) []procgroup.Option {
	var opts []procgroup.Option
	if in.TTY {
		opts = append(opts, procgroup.Terminal{Rows: rows, Cols: cols})
	} else {
		opts = append(opts, procgroup.Input{Unattended: true})
	}
	if work := (procgroup.Activity{CPU: true, IO: true}); work.Check() == nil {
		opts = append(opts, work) // a compiler that prints nothing is not idle
	}
	if runtime.GOOS == "linux" {
		opts = append(opts, procgroup.Helper) // ends even if this program is killed
	}
	return opts
}

// rows and cols are the size of terminals.
const rows, cols = 40, 120

// name returns the name of a command line for messages: its first word, or "command" if that is no plain name.
func name(command string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	first = filepath.Base(first)
	if len(first) > 40 || strings.ContainsAny(first, "\n\t\"'$`(){};&|<>") {
		return "command"
	}
	return cmp.Or(first, "command")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// keepFile records the path of the file with the output of a job, until the job is forgotten.
func (d *desk) keepFile(j *job.Job, path string) {
	d.mu.Lock()
	if a := d.told[j.ID]; a != nil {
		a.file = path
	}
	d.mu.Unlock()
	d.forget()
}

// forget removes the files and the accounts of jobs that d.jobs has dropped.
func (d *desk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, a := range d.told {
		if d.jobs.Get(id) == nil {
			if a.file != "" {
				_ = d.files.Remove(a.file)
			}
			delete(d.told, id)
		}
	}
}
