// Command setup finds the servers that the tests need, and gets what is
// missing where it may: packages of Debian or Ubuntu when it runs as root, and
// Oracle's MySQL and Valkey, which Debian's stable release doesn't have, out of
// Debian sid beside the system. Then it prepares a data folder template for each.
//
// It ends with a line for each kind of server. The exit status is 1 only when
// one is missing that the environment requires (DUECLAIM_REQUIRE, or CI=true).
// A second run finds everything in place and takes well under a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	installMissing(ctx)
	fetchFromSid(ctx)
	status := 0
	for _, k := range server.Kinds() {
		if line, ok := report(k); ok {
			fmt.Println(line)
		} else if require.Kind(k) {
			fmt.Println(line + "  (required)")
			status = 1
		} else {
			fmt.Println(line)
		}
	}
	stop()
	os.Exit(status)
}

// wanted says whether a server of our own is missing.
func wanted(k server.Kind) bool {
	_, err := server.Find(k)
	return err != nil && os.Getenv(require.Variable(k)) == ""
}

// report prepares a kind and says in a line what the tests will use.
func report(k server.Kind) (line string, ok bool) {
	if os.Getenv(require.Variable(k)) != "" {
		return fmt.Sprintf("setup: %-9s %s names a running one", k, require.Variable(k)), true
	}
	binary, err := server.Find(k)
	if err != nil {
		return fmt.Sprintf("setup: %-9s missing: %v", k, err), false
	}
	if err := server.Prepare(binary); err != nil {
		return fmt.Sprintf("setup: %-9s %s does not work: %v", k, binary.Path, err), false
	}
	return fmt.Sprintf("setup: %-9s %s  %s", k, binary.Version(), binary.Path), true
}
