package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTasksRunInTheOrderOfTheirDueTimes(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Regexp(t, `^first +ran \S+ after its due time\nsecond +ran .*\nlast +ran .*\n$`, out.String())
}
