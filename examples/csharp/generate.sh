#!/bin/sh
# Generates the C# client of docs/openapi.json into build. The generator is that of examples/java/client.
set -eu
cd "$(dirname "$0")"
[ -d ../java/client/build/generator ] || mvn -B -q -ntp -f ../java/client/pom.xml dependency:copy@generator
java -jar ../java/client/build/generator/openapi-generator-cli-7.25.0.jar batch --fail-fast generator.yaml
