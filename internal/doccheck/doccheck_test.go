// Package doccheck compiles the Go code in the project's documents, so that what
// a reader copies works.
package doccheck

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Blocks of Go in Markdown; each must be a whole file.
var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

func TestEveryGoBlockOfTheDocumentsCompiles(t *testing.T) {
	docs, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	roots, err := filepath.Glob("../../*.md")
	require.NoError(t, err)
	n := 0
	// Inside the module, so that imports resolve by its go.mod.
	dir, err := os.MkdirTemp(".", "blocks-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, doc := range append(roots, docs...) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(doc), ".md")
		for _, m := range goBlock.FindAllSubmatch(text, -1) {
			n++
			block := filepath.Join(dir, strings.ToLower(name)+"-"+string(rune('a'+n)))
			require.NoError(t, os.MkdirAll(block, 0o755))
			require.Regexp(t, `(?m)^package \w+$`, string(m[1]), "%s: block %d is not a whole file", doc, n)
			file := "block.go"
			if bytes.Contains(m[1], []byte(`"testing"`)) {
				file = "block_test.go"
			}
			require.NoError(t, os.WriteFile(filepath.Join(block, file), m[1], 0o644))
		}
	}
	require.Positive(t, n, "no Go block found: is the path right?")
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./"+filepath.ToSlash(dir)+"/...").CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// What a document says to run must be there.
func TestMakeTargetsNamedInTheDocumentsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	docs, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	roots, err := filepath.Glob("../../*.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`make ([a-z]+)")
	found := 0
	for _, doc := range append(roots, docs...) {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.Regexp(t, `(?m)^`+m[1]+`:`, string(makefile), "%s names make %s", doc, m[1])
		}
	}
	require.Positive(t, found)
}
