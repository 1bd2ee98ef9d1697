// Checks an OpenAPI document as Go's generators read it, with the examples and patterns.
package main

import (
	"fmt"
	"os"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromFile(os.Args[1])
	if err == nil {
		err = document.Validate(loader.Context)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
