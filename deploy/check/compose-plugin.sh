#!/usr/bin/env bash
# Prints the DOCKER_CONFIG with which `docker compose` works. If the client lacks compose v2, compose is built from its
# Go modules into the given folder (about two minutes, once). Exit code 3: not possible here; the last line gives the
# reason.
set -euo pipefail
version=v2.40.3
config="$1/docker-config"

if docker compose version > /dev/null 2>&1; then
  echo "${DOCKER_CONFIG:-$HOME/.docker}"
  exit 0
fi
plugin="$config/cli-plugins/docker-compose"
if ! [ -x "$plugin" ]; then
  command -v go > /dev/null || { echo 'docker compose is not installed, and there is no Go to build it with'; exit 3; }
  # go install rejects its go.mod (an exclude directive), so it is built from a wrapper module.
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
  cd "$build"
  printf 'module composebuild\n\ngo 1.25.0\n\nrequire github.com/docker/compose/v2 %s\n' "$version" > go.mod
  printf '//go:build tools\n\npackage tools\n\nimport _ "github.com/docker/compose/v2/cmd"\n' > tools.go
  mkdir -p "$config/cli-plugins"
  {
    nice -n 15 go mod tidy -e &&
      CGO_ENABLED=0 nice -n 15 go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$version" -o "$plugin.partial" github.com/docker/compose/v2/cmd
  } > build.log 2>&1 || { tail -n 5 build.log; echo 'docker compose could not be built'; exit 3; }
  mv "$plugin.partial" "$plugin"
fi
echo "$config"
