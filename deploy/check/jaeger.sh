#!/usr/bin/env bash
# jaeger.sh CACHE: prints the path of Jaeger 2, after building it from its Go modules into CACHE if it is not there (once).
# It is an OpenTelemetry Collector with Jaeger's storage and API. Exit code 3: not possible here; the last line gives the
# reason.
set -euo pipefail
# The Go module has version 1.76.0 for the program 2.13.0.
version=v1.76.0
program="$1/jaeger-$version"
if ! [ -x "$program" ]; then
  command -v go > /dev/null || { echo 'Jaeger is not here, and there is no Go to build it with'; exit 3; }
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
  cd "$build"
  printf 'module jaegerbuild\n\ngo 1.26.0\n\nrequire github.com/jaegertracing/jaeger %s\n' "$version" > go.mod
  printf '//go:build tools\n\npackage tools\n\nimport _ "github.com/jaegertracing/jaeger/cmd/jaeger"\n' > tools.go
  export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -modcacherw'
  { nice -n 15 go mod tidy -e && nice -n 15 go build -ldflags '-s -w' -o "$program.partial" github.com/jaegertracing/jaeger/cmd/jaeger; } > build.log 2>&1 ||
    { tail -n 5 build.log; echo 'Jaeger could not be built'; exit 3; }
  mv "$program.partial" "$program"
fi
echo "$program"
