package acceptance

import (
	"testing"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// TestMain makes this binary a worker where it was started as one.
func TestMain(m *testing.M) { fleet.Main(m, 4) }
