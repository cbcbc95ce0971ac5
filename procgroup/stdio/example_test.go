package stdio_test

import (
	"fmt"
	"log"
	"os"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

// A program that shares its standard streams with others.
func Example() {
	out := stdio.New(os.Stdout)
	log.SetOutput(stdio.New(os.Stderr))
	fmt.Fprintln(out, "whole, whatever the neighbours do")
	// Output: whole, whatever the neighbours do
}

func ExampleNew() {
	r, w, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	in, out := stdio.New(r), stdio.New(w)
	go func() {
		defer out.Close()
		fmt.Fprintln(out, "hello")
	}()
	var word string
	fmt.Fscan(in, &word)
	fmt.Println(word)
	// Output: hello
}
