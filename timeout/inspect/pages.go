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

// contentPolicy is the Content-Security-Policy of the page. It allows the page's own styles, script, pictures and
// requests to this server, and nothing else.
var contentPolicy = "default-src 'none'; style-src " + hashOf(styleText) + " " + hashOf(pictureStyle) + "; script-src " + hashOf(scriptText) +
	"; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pages returns the parsed templates. It parses them at its first call, because most programs that import this
// package get no request.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"style":   func() template.CSS { return template.CSS(styleText) },
		"script":  func() template.JS { return template.JS(scriptText) },
		"since":   since,
		"name":    name,
		"percent": func(part float64) string { return fmt.Sprintf("%.0f", part*100) },
		"add":     func(a, b int) int { return a + b },
		"text":    func(n any) string { return fmt.Sprint(n) },
	}).Parse(pageText))
})

// A onePage holds the data of the page of one execution.
type onePage struct {
	Row      *row
	Timeline template.HTML
	Abort    bool
	Stack    bool // whether the page offers a link to the present stack
	Ended    bool
	Query    query
}
