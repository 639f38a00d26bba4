package core_test

import (
	"go/build"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCoreImportsTheStandardLibraryOnly(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	for _, path := range pkg.Imports {
		first, _, _ := strings.Cut(path, "/")
		assert.NotContains(t, first, ".", "core imports %s", path)
		assert.NotEqual(t, "testing", path)
	}
	assert.NotEmpty(t, pkg.Imports)
}
