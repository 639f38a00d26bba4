package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbers are the scenarios, as the project numbers them.
var numbers = []int{
	1, 5, 7, 8, 9, 12, 14, 15, 17, 18, 21, 22, 23, 24, 25, 27, 29, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 42, 43, 45,
	46, 48, 49, 51, 52, 53, 54, 57, 58, 59,
}

var testOf = regexp.MustCompile(`(?m)^((?://.*\n)*)func (TestR(\d+)([A-Z]\w*))\(t \*testing\.T\)`)

// Each scenario has a test, with the link and more than a word above it, and stands in
// the table of the package's comment.
func TestEveryScenarioHasATestWithItsLink(t *testing.T) {
	require.Len(t, numbers, 40)
	table, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	told := map[int]bool{} // with the link, the symptom and what is right
	found := map[int][]string{}
	for _, dir := range []string{".", filepath.Join("..", "unknowns")} {
		paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		require.NoError(t, err)
		for _, path := range paths {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, m := range testOf.FindAllStringSubmatch(string(src), -1) {
				n, err := strconv.Atoi(m[3])
				require.NoError(t, err)
				assert.Contains(t, numbers, n, "%s is a scenario that the list doesn't know", m[2])
				if strings.Contains(m[1], "https://") && len(m[1]) > 150 {
					told[n] = true
				}
				found[n] = append(found[n], m[2])
			}
		}
	}
	for _, n := range numbers {
		if assert.NotEmpty(t, found[n], "R%d has no test", n) {
			assert.True(t, told[n], "R%d: no test of it has the link and what went wrong", n)
			row := fmt.Sprintf(`(?m)^//\tR%d +\S.* (%s)$`, n, strings.Join(found[n], "|"))
			assert.Regexp(t, row, string(table), "R%d in the table of the package's comment", n)
		}
	}
	assert.Equal(t, len(numbers), strings.Count(string(table), "\n//\tR"), "rows of the table")
}
