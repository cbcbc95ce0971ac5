package inspect

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"sync"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	styleText string
	//go:embed page.js
	scriptText string
)

// contentPolicy allows the page its own styles and script, and nothing else.
var contentPolicy = "default-src 'none'; style-src " + hashOf(styleText) + " " + hashOf(pictureStyle) + "; script-src " + hashOf(scriptText) +
	"; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pages is parsed at the first request: most programs that import this package get none, and those that start
// often would parse it each time.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(styleText) },
		"script": func() template.JS { return template.JS(scriptText) },
		"since":  since,
		"name": func(tool string) string {
			if tool == "" {
				return "(no name)"
			}
			return tool
		},
		"percent": func(part float64) string { return fmt.Sprintf("%.0f", part*100) },
		"add":     func(a, b int) int { return a + b },
		"text":    func(n any) string { return fmt.Sprint(n) },
	}).Parse(pageText))
})

// A onePage is the data of the page of one execution.
type onePage struct {
	Row      *row
	Timeline template.HTML
	Abort    bool
	Stack    bool // the page offers its stack
	Ended    bool
	Query    query
}
