package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

var (
	jsonBlock = regexp.MustCompile("(?ms)^```json\n(\\{\n.*?)^```$")
	shellLine = regexp.MustCompile(`(?m)^    mcpserver (.*)$`)
)

// A hostConfig is a host's file, with the name that it has for servers.
type hostConfig map[string]map[string]struct {
	Command, Type, URL string
	Args               []string
	Env                map[string]string
}

// What the README says to put into a host's configuration starts the server, or is where it
// listens.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(home, "go", "bin", "mcpserver")
	if err := os.MkdirAll(filepath.Dir(installed), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, installed); err != nil {
		t.Skip(err)
	}
	flags := strings.Fields(shellLine.FindStringSubmatch(string(readme))[1])
	address := flags[1]
	stdio, web := 0, 0
	for _, block := range jsonBlock.FindAllStringSubmatch(string(readme), -1) {
		var hosts hostConfig
		if err := json.Unmarshal([]byte(block[1]), &hosts); err != nil {
			t.Fatalf("%v in %s", err, block[1])
		}
		for key, servers := range hosts {
			if key != "mcpServers" && key != "servers" {
				t.Errorf("no host knows %s", key)
			}
			c := servers["deadlines"]
			if c.Type == "http" {
				web++
				if want := "http://" + address + "/mcp"; c.URL != want || flags[0] != "-http" {
					t.Errorf("%s, want %s", c.URL, want)
				}
				continue
			}
			stdio++
			path := strings.NewReplacer("${HOME}", home, "${userHome}", home).Replace(c.Command)
			cmd := exec.Command(path, c.Args...)
			mark := leftovers.Mark()
			cmd.Env = append(cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", mark)
			for k, v := range c.Env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			m := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := m.Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tools, err := session.ListTools(context.Background(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Errorf("%v, %v", tools, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			leftovers.None(t, mark)
		}
	}
	if stdio != 2 || web != 2 {
		t.Errorf("found %d and %d configurations", stdio, web)
	}

	// The same with another port, where nothing else can be.
	p := overHTTPAt(t, strings.Replace(address, "8137", "0", 1), nil)
	if !strings.HasPrefix(p.url, "http://127.0.0.1:") || !strings.HasSuffix(p.url, "/mcp") {
		t.Error(p.url)
	}
	// And without a host's name nobody else can connect.
	if p = overHTTPAt(t, ":0", nil); !strings.HasPrefix(p.url, "http://127.0.0.1:") {
		t.Error(p.url)
	}
}
