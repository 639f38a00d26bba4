package conformance

import "testing"

// SQLFailures returns the cases that store fails, by name, with their texts.
func SQLFailures(t *testing.T, store SQL, only func(name string) bool) map[string]string {
	return collect(newSettings(store.provides(), store.Skip), only, func(s settings) { testSQL(t, store, s) })
}

// SQLRules returns all rules of TestSQL by name.
func SQLRules() map[string]string {
	rules := map[string]string{}
	for _, c := range sqlCases() {
		rules[c.name] = c.rule
	}
	return rules
}

// SQLNames returns the names of all cases of TestSQL.
func SQLNames() []string { return names(sqlCases()) }

// StrayScripts returns what is wrong with the names in Scripts and Costs.
func StrayScripts(store SQL) []error { return store.strayScripts() }

// SQLWhyNot says why a case of TestSQL isn't run, "" where it is.
func SQLWhyNot(store SQL, name string) string {
	for _, c := range sqlCases() {
		if c.name == name {
			return newSettings(store.provides(), store.Skip).whyNot(name, c.needs)
		}
	}
	return "there is no such case"
}
