#!/bin/sh
# Installs the generator and what its client needs into build, and generates the Python client of docs/openapi.json there.
set -eu
cd "$(dirname "$0")"
python3 -m pip install --quiet --no-warn-conflicts --target build -r requirements.txt
PYTHONPATH=build build/bin/openapi-generator-cli batch --fail-fast generator.yaml
