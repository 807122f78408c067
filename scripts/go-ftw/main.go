// The runner of go-ftw, with a command line of its own:
//
//	go-ftw -tests DIR -log FILE -address HOST:PORT -count N
//
// go-ftw's own command line needs a module that is no longer to be had; everything that reads tests, sends
// requests, reads the log and judges is go-ftw's, used as it is. The only override is the address of the server.
// Fails unless exactly N tests ran and all passed.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/coreruleset/go-ftw/v2/config"
	"github.com/coreruleset/go-ftw/v2/output"
	"github.com/coreruleset/go-ftw/v2/runner"
	"github.com/coreruleset/go-ftw/v2/test"
	"github.com/rs/zerolog"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "go-ftw:", err)
		os.Exit(1)
	}
}

func run() error {
	tests := flag.String("tests", "", "folder of the tests")
	logFile := flag.String("log", "", "error log of the server")
	address := flag.String("address", "127.0.0.1:8080", "the server")
	count := flag.Int("count", 0, "number of tests that must run; 0 for any")
	only := flag.String("only", "", "regular expression of the tests to run")
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.WarnLevel)

	host, port, err := net.SplitHostPort(*address)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	settings := config.NewDefaultConfig()
	settings.LogFile = *logFile + ".whole"
	if err := follow(*logFile, settings.LogFile); err != nil {
		return err
	}
	settings.TestOverride.Overrides.DestAddr = &host
	settings.TestOverride.Overrides.Port = &number
	if *only != "" {
		if settings.IncludeTests, err = config.NewFTWRegexp(*only); err != nil {
			return err
		}
	}
	options := config.NewRunnerConfiguration(settings)
	options.ConnectTimeout = 3 * time.Second
	options.ReadTimeout = 10 * time.Second
	options.ShowOnlyFailed = true
	// The log is written a few milliseconds after the answer, and a mark is asked for again at once.
	options.MaxMarkerRetries = 500

	files, err := test.GetTestsFromFiles(*tests + "/**/*.yaml")
	if err != nil {
		return err
	}
	result, err := runner.Run(options, files, output.NewOutput("plain", os.Stdout))
	if err != nil {
		return err
	}
	stats := result.Stats
	passed := len(stats.Success)
	fmt.Printf("%d passed, %d failed, %d skipped, %d ignored\n",
		passed, stats.TotalFailed(), len(stats.Skipped), len(stats.Ignored))
	switch {
	case stats.TotalFailed() > 0:
		return fmt.Errorf("%d tests failed: %v", stats.TotalFailed(), stats.Failed)
	case *count > 0 && passed != *count:
		return fmt.Errorf("%d tests passed, expected %d", passed, *count)
	}
	return nil
}
