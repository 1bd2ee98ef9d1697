#!/bin/sh
# Generates the Java client of docs/openapi.json into build/client and compiles it into build/classes.
set -eu
cd "$(dirname "$0")"
mvn -B -q -ntp dependency:copy-dependencies dependency:copy@generator
java -jar build/generator/openapi-generator-cli-7.25.0.jar batch --fail-fast generator.yaml
javac -nowarn -proc:none -cp 'build/jars/*' -d build/classes $(find build/client/src/main -name '*.java') Caller.java
