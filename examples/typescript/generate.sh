#!/bin/sh
# Installs openapi-typescript and openapi-fetch, generates the types of docs/openapi.json, and checks the caller with them.
set -eu
cd "$(dirname "$0")"
npm ci --silent
npx openapi-typescript ../../docs/openapi.json --default-non-nullable=false \
  --output build/bank.d.ts > /dev/null
npx tsc
