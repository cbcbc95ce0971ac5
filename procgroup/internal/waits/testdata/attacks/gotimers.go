package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	switch os.Args[1] {
	case "after":
		time.AfterFunc(90*time.Second, func() {})
	case "hourly":
		time.AfterFunc(time.Hour, func() {})
	case "sleep":
		go time.Sleep(2 * time.Minute)
	case "ticker":
		go func() {
			for range time.Tick(30 * time.Second) {
			}
		}()
	}
	io.ReadAll(os.Stdin)
	fmt.Print(time.Now())
}
