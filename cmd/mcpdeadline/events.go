package main

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// An event is one of a stream of server-sent events.
type event struct {
	id   string
	data []byte
}

// readEvents reads a stream of events of which none has a line of more than max bytes, until its
// end. It returns what the server has asked to wait before the next try, 0 where it has not.
func readEvents(r io.Reader, max int, took func(event)) (retry time.Duration, _ error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, max+len("data: ")+1)
	var e event
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if len(e.data) > 0 || e.id != "" {
				took(e)
			}
			e = event{}
			continue
		}
		field, text, _ := bytes.Cut(line, []byte(":"))
		text = bytes.TrimPrefix(text, []byte(" "))
		switch string(field) {
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, text...)
		case "id":
			e.id = string(text)
		case "retry":
			if n, err := strconv.ParseUint(string(text), 10, 31); err == nil {
				retry = time.Duration(n) * time.Millisecond
			}
		}
	}
	return retry, lines.Err()
}
