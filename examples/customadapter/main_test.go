package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Handlers run side by side: on a busy machine one may be overtaken by that of a
// later task.
func TestEachTaskRuns(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	line := regexp.MustCompile(`^(\S+) +ran \S+ after its due time$`)
	ran := map[string]bool{}
	for text := range strings.Lines(out.String()) {
		found := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		require.NotNil(t, found, "%q", text)
		ran[found[1]] = true
	}
	assert.Equal(t, map[string]bool{"first": true, "second": true, "last": true}, ran)
}
