package sqlmocked

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"

	"github.com/stretchr/testify/assert"
)

// made matches ‹name›: a value made up at run time.
var made = regexp.MustCompile(`‹[^›]+›`)

const anything = "‹any›"

// match compares a statement with the script's, white space aside. sqlmock calls
// it for the step that is next.
func (p *play) match(want, got string) error {
	want, got = strings.Join(strings.Fields(want), " "), strings.Join(strings.Fields(got), " ")
	names := made.FindAllString(want, -1)
	if len(names) == 0 {
		if want != got {
			return differ(want, got)
		}
		return nil
	}
	parts := made.Split(want, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	found := regexp.MustCompile("(?s)^" + strings.Join(parts, "(.+?)") + "$").FindStringSubmatch(got)
	if found == nil {
		return differ(want, got)
	}
	for i, name := range names {
		if err := p.bind(name, found[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// bind checks a made-up value against what its name stood for before.
func (p *play) bind(name string, got driver.Value) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.bound[name]
	switch {
	case name == anything:
	case !known:
		p.bound[name] = got
	case fmt.Sprint(was) != fmt.Sprint(got):
		return fmt.Errorf("%s was %v before and is %v now", name, was, got)
	}
	return nil
}

// filled is a value of a reply: where it is ‹name›, what that stands for.
func (p *play) filled(s string) driver.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.bound[s]; ok {
		return v
	}
	return s
}

// differ shows where two statements part.
func differ(want, got string) error {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	from := max(0, i-40)
	cut := func(s string) string {
		s = s[min(from, len(s)):]
		if len(s) > 300 {
			s = s[:300] + "…"
		}
		return s
	}
	return fmt.Errorf("the statement isn't the script's; they part at byte %d:\n\t\tgot:  …%s\n\t\twant: …%s", i, cut(got), cut(want))
}

// argument compares one argument of a statement.
type argument struct {
	p    *play
	n    int
	want driver.Value
	// said is the play's own word about a difference; sqlmock's is only that
	// there is one.
	said func(error)
}

// arguments are what sqlmock compares. They are never nil, which it would take for
// any number of arguments.
func (p *play) arguments(want []driver.Value) []driver.Value {
	said := func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.wrong == nil {
			p.wrong = fmt.Errorf("step %d: %w", p.asked+1, err)
		}
	}
	args := make([]driver.Value, len(want))
	for i, v := range want {
		args[i] = argument{p, i + 1, v, said}
	}
	return args
}

// Match implements sqlmock.Argument.
func (a argument) Match(got driver.Value) bool {
	if err := a.compare(got); err != nil {
		a.said(fmt.Errorf("argument %d: %w", a.n, err))
		return false
	}
	return true
}

func (a argument) compare(got driver.Value) error {
	switch want := a.want.(type) {
	case string:
		if made.FindString(want) == want && want != "" {
			return a.p.bind(want, got)
		}
	case []string:
		if list, ok := got.([]string); ok && len(list) == len(want) {
			for i := range want {
				if err := (argument{a.p, a.n, want[i], a.said}).compare(list[i]); err != nil {
					return fmt.Errorf("element %d: %w", i, err)
				}
			}
			return nil
		}
	case int:
		a.want = int64(want)
	}
	if n, ok := got.(int); ok {
		got = int64(n)
	}
	if !assert.ObjectsAreEqual(a.want, got) {
		return fmt.Errorf("got %T %.300v, want %T %.300v", got, got, a.want, a.want)
	}
	return nil
}
