package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDebianArchiveIsFoundInBothFormatsOfAptSources(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one line", "# deb http://old.example/debian x main\ndeb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		{"with options", "deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian/ bookworm main\n", "https://mirror.example/debian"},
		{"deb822", "Types: deb\n# a remark\nURIs: http://mirror.example/debian\nSuites: bookworm\n", "http://mirror.example/debian"},
		{"security is another archive", "URIs: http://mirror.example/debian-security\n\nURIs: http://mirror.example/debian\n", "http://mirror.example/debian"},
		{"another vendor's", "deb https://vendor.example/repo stable main\n", ""},
		{"Ubuntu", "deb http://mirror.example/ubuntu noble main\n", ""},
	} {
		require.Equal(t, c.want, firstDebian(c.text), c.name)
	}
}
