//go:build !race

package seededbugs

var buildFlags []string
