package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A manual is what a program says in its help. Manual pages and completions are made of it, so that
// there is one text of each option.
type manual struct {
	name     string
	synopsis []string // command lines, without the program's name
	about    string   // a paragraph
	options  []option
	notes    []string // paragraphs
	status   []item
	examples []item
}

// An option is a flag of a program.
type option struct {
	short, long string // with their dashes; short may be empty
	arg         string // the name of the argument; empty if there is none
	text        string
}

// An item is a line and what it means.
type item struct{ line, text string }

var (
	gnuOption = regexp.MustCompile(`^ {2,6}(?:(-\w), )?(--[\w-]+)(?:=(\S+))?(?: {2,}(.*))?$`)
	goOption  = regexp.MustCompile(`^  (-[\w-]+)(?: (.+))?$`)
	statuses  = regexp.MustCompile(`^  (\d+|-) +(.+)$`)
)

// parseHelp reads the help of a program: of GNU's form, or of package flag's.
func parseHelp(name, help string) (*manual, error) {
	m := &manual{name: name}
	part, fresh := "usage", true
	for n, line := range strings.Split(strings.TrimRight(help, "\n"), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			fresh = true
			continue
		case text == "Exit status:" || text == "Examples:":
			part = text
			continue
		}
		gnu, std, ok := gnuOption.FindStringSubmatch(line), goOption.FindStringSubmatch(line), true
		switch part {
		case "usage":
			command, isUsage := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "Usage: "), "or:  "), name+" ")
			switch {
			case isUsage && m.about == "":
				m.synopsis = append(m.synopsis, command)
			case gnu == nil && std == nil:
				m.about = join(m.about, text, fresh)
			default:
				part = "options"
			}
		case "options":
			if !strings.HasPrefix(line, " ") {
				part = "notes"
			}
		}
		switch part {
		case "options":
			switch {
			case gnu != nil:
				m.options = append(m.options, option{gnu[1], gnu[2], gnu[3], gnu[4]})
			case std != nil:
				m.options = append(m.options, option{"", std[1], std[2], ""})
			default:
				last := &m.options[len(m.options)-1]
				last.text = join(last.text, text, false)
			}
		case "notes":
			if fresh {
				m.notes = append(m.notes, "")
			}
			last := &m.notes[len(m.notes)-1]
			*last = join(*last, text, false)
		case "Exit status:":
			var s []string
			if s = statuses.FindStringSubmatch(line); s != nil {
				m.status = append(m.status, item{s[1], s[2]})
			} else if ok = len(m.status) > 0; ok {
				last := &m.status[len(m.status)-1]
				last.text = join(last.text, text, false)
			}
		case "Examples:":
			if strings.HasPrefix(text, name+" ") {
				m.examples = append(m.examples, item{text, ""})
			} else if ok = len(m.examples) > 0; ok {
				last := &m.examples[len(m.examples)-1]
				last.text = join(last.text, text, false)
			}
		}
		if !ok {
			return nil, fmt.Errorf("help of %s, line %d: cannot read %q in %q", name, n+1, line, part)
		}
		fresh = false
	}
	if m.synopsis == nil || m.about == "" || m.options == nil || m.status == nil || m.examples == nil {
		return nil, fmt.Errorf("help of %s: want usage, a description, options, exit status and examples: %+v", name, m)
	}
	return m, nil
}

// join adds words to a paragraph.
func join(paragraph, words string, fresh bool) string {
	switch {
	case paragraph == "":
		return words
	case fresh:
		return paragraph + "\n" + words
	}
	return paragraph + " " + words
}

var listed = regexp.MustCompile(`: ([\w-]+(?:, [\w-]+)+)`)

// values returns the words that may be the option's argument: those that its text lists, as in "…: cpu, io".
func (o option) values() []string {
	if o.arg == "SIGNAL" {
		return []string{"TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2", "ALRM", "STOP", "CONT"}
	}
	if m := listed.FindStringSubmatch(o.text); m != nil && o.arg != "" {
		return strings.Split(m[1], ", ")
	}
	return nil
}
