#!/usr/bin/env bash
# push-image.sh REPOSITORY: builds the image of this commit for amd64 and arm64 and pushes it, with SBOM and provenance, as
# REPOSITORY:<version of package.json>; prints its digest for `image.digest` of the chart. Needs a login at the registry and a
# builder for both platforms (docker buildx create --use --driver docker-container). NODE_IMAGE: the base image, by digest.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain)" ] || { echo 'there are changes that are in no commit' >&2; exit 1; }
version=$(sed -n 's/^  "version": "\(.*\)",/\1/p' package.json)
docker buildx build --push --platform linux/amd64,linux/arm64 --provenance=mode=max --sbom=true --target production -f deploy/Dockerfile \
  --build-arg NODE_IMAGE="${NODE_IMAGE:-node:24-bookworm-slim}" --build-arg VERSION="$version" --build-arg REVISION="$(git rev-parse HEAD)" \
  --tag "$1:$version" .
docker buildx imagetools inspect "$1:$version" --format '{{ .Manifest.Digest }}'
