// Package line is conformance.Line, by which the adapters' tests reach their servers.
package line

import "github.com/dueclaim/dueclaim/conformance"

// Line is a way to a server that a test may cut and hold up.
type Line = conformance.Line
