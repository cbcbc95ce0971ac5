package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

//go:embed models/*.pml
var models embed.FS

// stopC is compiled together with the verifier, see there.
//
//go:embed models/stop.c
var stopC []byte

// A model is the text that is checked.
type model struct {
	name   string
	source []byte
}

// loadModel returns the model that args name, or else the one of that name that is built
// in. A file is copied, so it cannot include others that lie beside it.
func loadModel(args []string, name string) (model, error) {
	if len(args) > 1 {
		return model{}, fmt.Errorf("%d arguments, but at most one MODEL is accepted", len(args))
	}
	if len(args) == 1 {
		name = args[0]
	}
	if source, err := models.ReadFile("models/" + name + ".pml"); err == nil {
		return model{name, source}, nil
	}
	source, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return model{}, fmt.Errorf("there is no file %q, nor is a model of that name built in: those are correct, deadlock, assertion and huge", name)
	}
	return model{name, source}, err
}
