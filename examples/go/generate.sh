#!/bin/sh
# Generates the Go client of docs/openapi.json into bank and builds the caller.
set -eu
cd "$(dirname "$0")"
mkdir -p bank
go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ../../docs/openapi.json
go build -o build/caller .
