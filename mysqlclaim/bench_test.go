package mysqlclaim

import (
	"fmt"
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// BenchmarkClaimer measures every method on every server.
func BenchmarkClaimer(b *testing.B) {
	for _, server := range backends {
		for _, deletes := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/deletes=%t", server.name, deletes), func(b *testing.B) {
				conformance.BenchmarkClaimer(b, func(b *testing.B) core.Claimer {
					return fresh(b, server, Options{DeleteFinished: deletes})
				}, nil)
			})
		}
	}
}
