// What Coraza takes for the messages of engine-bench: coraza RULES FOLDER CASE SECONDS, as modsecurity3.c has it. CPU time is
// that of the whole process, so that the garbage collector counts.
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/types"
)

type header struct{ name, value string }

type message struct {
	first   []string
	headers []header
	body    []byte
}

func main() {
	if len(os.Args) != 5 {
		quit("usage: coraza RULES FOLDER CASE SECONDS")
	}
	waf, err := coraza.NewWAF(coraza.NewWAFConfig().WithDirectivesFromFile(os.Args[1]))
	if err != nil {
		quit(err)
	}
	var requests, responses []*message
	for n := 0; ; n++ {
		path := filepath.Join(os.Args[2], fmt.Sprintf("%s.%d.", os.Args[3], n))
		request := read(path + "request")
		if request == nil {
			break
		}
		requests = append(requests, request)
		responses = append(responses, read(path+"response"))
	}
	if len(requests) == 0 {
		quit("no such case: ", os.Args[3])
	}
	seconds, err := strconv.ParseFloat(os.Args[4], 64)
	if err != nil {
		quit(err)
	}
	exchange(waf, requests[0], responses[0])
	refusals, exchanges := 0, 0
	begin, started := cpu(), time.Now()
	for exchanges == 0 || time.Since(started).Seconds() < seconds {
		at := exchanges % len(requests)
		if exchange(waf, requests[at], responses[at]) {
			refusals++
		}
		exchanges++
	}
	spent := cpu() - begin
	fmt.Printf("%.1f %d of %d refused\n", float64(spent.Nanoseconds())/1e3/float64(exchanges), refusals, exchanges)
}

// read gives nil if there is no such file.
func read(path string) *message {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	head, body, found := bytes.Cut(text, []byte("\r\n\r\n"))
	if !found {
		quit(path, " has no head")
	}
	lines := strings.Split(string(head), "\r\n")
	out := &message{first: strings.SplitN(lines[0], " ", 3), body: body}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		out.headers = append(out.headers, header{name, value})
	}
	return out
}

func exchange(waf coraza.WAF, request, response *message) bool {
	tx := waf.NewTransaction()
	defer func() {
		tx.ProcessLogging()
		if err := tx.Close(); err != nil {
			quit(err)
		}
	}()
	tx.ProcessConnection("192.0.2.7", 4711, "192.0.2.7", 4711)
	tx.ProcessURI(request.first[1], request.first[0], request.first[2])
	for _, header := range request.headers {
		tx.AddRequestHeader(header.name, header.value)
		if strings.EqualFold(header.name, "host") {
			tx.SetServerName(header.value)
		}
	}
	if tx.ProcessRequestHeaders() != nil {
		return true
	}
	if len(request.body) > 0 {
		if interruption, _, err := tx.WriteRequestBody(request.body); err != nil || interruption != nil {
			return true
		}
	}
	if interruption, err := tx.ProcessRequestBody(); err != nil || interruption != nil {
		return true
	}
	return response != nil && answer(tx, response)
}

func answer(tx types.Transaction, response *message) bool {
	for _, header := range response.headers {
		tx.AddResponseHeader(header.name, header.value)
	}
	if tx.ProcessResponseHeaders(http.StatusOK, "HTTP/1.1") != nil {
		return true
	}
	if interruption, _, err := tx.WriteResponseBody(response.body); err != nil || interruption != nil {
		return true
	}
	interruption, err := tx.ProcessResponseBody()
	return err != nil || interruption != nil
}

func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		quit(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func quit(why ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"coraza: "}, why...)...)
	os.Exit(1)
}
