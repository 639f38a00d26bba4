package claim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func TestTableNamesThatAreTaken(t *testing.T) {
	for _, name := range []string{"t", "_", "dueclaim_tasks", "Tasks$2", "shop.tasks", strings.Repeat("t", 58), strings.Repeat("s", 58) + "." + strings.Repeat("t", 58)} {
		assert.NoError(t, claim.CheckTable(name, 5), name)
	}
}

func TestTableNamesThatAreRefused(t *testing.T) {
	for _, name := range []string{
		"", ".", "t.", ".t", "a.b.c", "1t", "$t", "a b", " t", "t ", "t\n", "t\x00", "t`", `t"`, "t'", "t;--", "täsk", "t-t", "t\\", "t/*",
		strings.Repeat("t", 59), strings.Repeat("s", 59) + ".t",
	} {
		err := claim.CheckTable(name, 5)
		assert.ErrorIs(t, err, core.ErrInvalid, "%q", name)
		assert.ErrorContains(t, err, "at most 58 bytes", "%q", name)
	}
}

func TestTableNamesAreQuotedPartByPart(t *testing.T) {
	assert.Equal(t, "`tasks`", claim.QuoteTable("tasks", '`'))
	assert.Equal(t, `"shop"."tasks"`, claim.QuoteTable("shop.tasks", '"'))
	assert.Equal(t, `"a""b"`, claim.QuoteTable(`a"b`, '"'), "though CheckTable refuses it")
}

func TestQueueNames(t *testing.T) {
	for _, queue := range []string{"q", "default", "two words", "Ünï`\"'", strings.Repeat("q", 100)} {
		assert.NoError(t, claim.CheckQueue(queue), queue)
	}
	for _, queue := range []string{"", " q", "q ", "\u00a0q", "a\x00b", "a\nb", "a\u0085b", "a\xffb", strings.Repeat("q", 101)} {
		assert.ErrorIs(t, claim.CheckQueue(queue), core.ErrInvalid, "%q", queue)
	}
}
