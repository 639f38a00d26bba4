package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFileIsWhatTheGeneratorMakes(t *testing.T) {
	var made bytes.Buffer
	require.NoError(t, write(&made))
	file, err := os.ReadFile("../orders.csv")
	require.NoError(t, err)
	assert.True(t, bytes.Equal(made.Bytes(), file), "go run ./examples/orders/generate > examples/orders/orders.csv")
}
