// Package scenarios is filled in below.
package scenarios
