package pgclaim

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dueclaim/dueclaim/core"
)

// What core checks before it calls an adapter, for the callers of the Tx methods.

func checkCall(call core.Call) error {
	if err := checkToken("Call.ID", call.ID); err != nil {
		return err
	}
	if call.Now.UnixMilli() <= 0 {
		return fmt.Errorf("%w: Call.Now is %v; want the present time", core.ErrInvalid, call.Now)
	}
	return nil
}

func checkSettlement(x core.Settlement) error {
	if err := x.Grant.ID.Check(); err != nil {
		return err
	}
	if err := checkToken("Grant.Holder", x.Grant.Holder); err != nil {
		return err
	}
	switch x.Outcome {
	case core.Done, core.DeadLetter:
		return nil
	case core.Retry, core.Released:
		return core.CheckDue(x.Due)
	default:
		return fmt.Errorf("%w: outcome %d", core.ErrInvalid, x.Outcome)
	}
}

func checkToken(name, value string) error {
	printable := func(r rune) bool { return r >= ' ' && r <= '~' }
	if value == "" || len(value) > core.MaxCallBytes || strings.ContainsFunc(value, func(r rune) bool { return !printable(r) }) {
		return fmt.Errorf("%w: %s is %q; want 1 to %d bytes of printable ASCII", core.ErrInvalid, name, value, core.MaxCallBytes)
	}
	return nil
}

// cleanText makes an error text storable: valid UTF-8 without NUL, at most
// core.MaxErrorBytes.
func cleanText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= core.MaxErrorBytes {
		return text
	}
	end := core.MaxErrorBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
