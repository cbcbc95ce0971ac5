package lease_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m, nil, harness.Options{}) }
