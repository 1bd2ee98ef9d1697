#!/usr/bin/env bash
# keycloak.sh CACHE: prints the folder of Keycloak, after fetching it with Maven into CACHE and building its server for an
# in-memory database if it is not there (once). Exit code 3: not possible here; the last line gives the reason.
set -euo pipefail
version=26.7.3
folder="$1/keycloak-$version"
if ! [ -d "$folder" ]; then
  for tool in java mvn; do
    command -v $tool > /dev/null || { echo "Keycloak is not here, and there is no $tool to prepare it with"; exit 3; }
  done
  partial=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  cd "$partial"
  { mvn -B -ntp -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack \
    "-Dartifact=org.keycloak:keycloak-quarkus-dist:$version:zip" "-DoutputDirectory=$partial" &&
    "keycloak-$version/bin/kc.sh" build --db=dev-mem; } > prepare.log 2>&1 ||
    { tail -n 5 prepare.log; echo 'Keycloak could not be fetched or built'; exit 3; }
  mv "keycloak-$version" "$folder"
fi
echo "$folder"
