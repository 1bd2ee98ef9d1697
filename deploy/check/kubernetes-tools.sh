#!/usr/bin/env bash
# kubernetes-tools.sh DIR NAME...: installs the named tools into DIR/bin unless they are in PATH or there already. helm,
# etcd, kwok, metrics-server, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, and kubectl are
# built from Go modules (about eight minutes in total on two idle cores, once); cni and dnsmasq are Debian packages. `definitions` writes
# the CRDs of KEDA, the Prometheus operator, the Gateway API, CloudNativePG with its backups, External Secrets, and Strimzi
# to DIR/crds; `stages` writes those of kwok's simulated nodes to DIR/stages. Strimzi is written in Java: its own generator
# creates its CRDs from its classes, both from Maven. Exit code 3: not possible here; the last line gives the reason.
set -euo pipefail
kubernetes=v1.36.3 etcd=v3.6.8 helm=v3.22.0 kwok=v0.8.0 metrics_server=v0.9.0 keda=v2.21.0 prometheus_operator=v0.85.0 gateway_api=v1.6.3
cloudnative_pg=v1.28.0 barman=v0.15.0 external_secrets=v1.3.2
# The last published generator, and the classes of a version that supports kafka.strimzi.io/v1, with the models with
# which it was built.
strimzi_generator=0.45.0 strimzi=0.51.0 fabric8=7.5.2
dir=$(mkdir -p "$1" && cd "$1" && pwd)
shift
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -modcacherw'
mkdir -p "$dir/bin" "$dir/crds" "$dir/stages" "$dir/module" "$dir/log"
export PATH="$dir/bin:$PATH"

# PACKAGE: a Debian package.
install() {
  [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || { echo "no $1 here, and no apt-get as root to install it with"; return 1; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1"; }
}

# Prints the go.mod of MODULE@VERSION, or the folder with its files.
of_module() {
  (cd "$(mktemp -d)" && go mod download -json "$2" | sed -n "s/.*\"$1\": \"\(.*\)\".*/\1/p")
}

# All of them are in one module, because `go install` rejects Kubernetes (its go.mod has replace directives), and shared
# dependencies are then compiled once.
module() {
  cd "$dir/module"
  printf '//go:build tools\n\npackage tools\n\n' > wanted
  printf 'import _ "%s"\n' k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kube-proxy,kubectl} helm.sh/helm/v3/cmd/helm sigs.k8s.io/kwok/cmd/kwok sigs.k8s.io/metrics-server/cmd/metrics-server go.etcd.io/etcd/server/v3 >> wanted
  [ -f ready ] && cmp -s wanted tools.go && return
  rm -f ready && mv wanted tools.go
  printf 'module tools\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire k8s.io/kubernetes %s\nrequire helm.sh/helm/v3 %s\nrequire sigs.k8s.io/kwok %s\nrequire sigs.k8s.io/metrics-server %s\nrequire go.etcd.io/etcd/server/v3 %s\n' $kubernetes $helm $kwok $metrics_server $etcd > go.mod
  sed -n "s#^\s*\(k8s.io/[a-z0-9-]*\) => ./staging/.*#replace \1 => \1 v0.${kubernetes#v1.}#p" "$(of_module GoMod k8s.io/kubernetes@$kubernetes)" >> go.mod
  go mod tidy -e
  touch ready
}

# DIR: Maven resolves the jars into DIR/jars; the CRDs are written to DIR/*.yaml.
strimzi() {
  command -v mvn > /dev/null && command -v java > /dev/null || { echo 'there is no Java with Maven to make the definitions of Strimzi with'; return 1; }
  cat > "$1/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>check</groupId><artifactId>definitions</artifactId><version>1</version>
  <dependencyManagement><dependencies>
    <dependency><groupId>io.fabric8</groupId><artifactId>kubernetes-client-bom</artifactId><version>$fabric8</version><type>pom</type><scope>import</scope></dependency>
  </dependencies></dependencyManagement>
  <dependencies>
    <dependency><groupId>io.strimzi</groupId><artifactId>api</artifactId><version>$strimzi</version></dependency>
    <dependency><groupId>io.strimzi</groupId><artifactId>crd-generator</artifactId><version>$strimzi_generator</version></dependency>
    <dependency><groupId>io.fabric8</groupId><artifactId>kubernetes-client-api</artifactId></dependency>
  </dependencies>
</project>
END
  mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1/jars"
  # The generator contains older models, so they come last on the class path.
  local jars model=io.strimzi.api.kafka.model
  jars=$(printf '%s:' $(ls "$1"/jars/*.jar | grep -v crd-generator) "$1"/jars/crd-generator-*.jar)
  java -cp "$jars" io.strimzi.crdgenerator.CrdGenerator --yaml "$model.kafka.Kafka=$1/kafkas.yaml" "$model.nodepool.KafkaNodePool=$1/kafkanodepools.yaml" \
    "$model.user.KafkaUser=$1/kafkausers.yaml" "$model.topic.KafkaTopic=$1/kafkatopics.yaml"
}

build() {
  command -v go > /dev/null || { echo 'there is no Go to build it with'; return 1; }
  module
  local version=k8s.io/component-base/version
  go build -ldflags "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=36 -X helm.sh/helm/v3/internal/version.version=$helm -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36" -o "$dir/bin/$name" "$1"
}

provide() {
  case "$1" in
    # Debian's etcd is not used: with version 3.4, watches of this API server are late.
    etcd) build go.etcd.io/etcd/server/v3 ;;
    cni) [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || install containernetworking-plugins ;;
    dnsmasq) command -v dnsmasq || install dnsmasq-base ;;
    kubectl) command -v kubectl || build k8s.io/kubernetes/cmd/kubectl ;;
    helm) command -v helm || build helm.sh/helm/v3/cmd/helm ;;
    kwok | metrics-server) build "sigs.k8s.io/$1/cmd/$1" ;;
    kube-* | kubelet) build "k8s.io/kubernetes/cmd/$1" ;;
    definitions)
      cp "$(of_module Dir github.com/kedacore/keda/v2@$keda)"/config/crd/bases/*.yaml "$dir/crds/"
      cp "$(of_module Dir github.com/prometheus-operator/prometheus-operator@$prometheus_operator)"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml "$dir/crds/"
      cp "$(of_module Dir sigs.k8s.io/gateway-api@$gateway_api)"/config/crd/standard/gateway.networking.k8s.io_{gateways,httproutes}.yaml "$dir/crds/"
      cp "$(of_module Dir github.com/cloudnative-pg/cloudnative-pg@$cloudnative_pg)"/config/crd/bases/postgresql.cnpg.io_{clusters,scheduledbackups}.yaml "$dir/crds/"
      cp "$(of_module Dir github.com/cloudnative-pg/plugin-barman-cloud@$barman)"/config/crd/bases/*.yaml "$dir/crds/"
      cp "$(of_module Dir github.com/external-secrets/external-secrets@$external_secrets)"/config/crds/bases/external-secrets.io_{externalsecrets,secretstores}.yaml "$(of_module Dir github.com/external-secrets/external-secrets@$external_secrets)"/config/crds/bases/generators.external-secrets.io_passwords.yaml "$dir/crds/"
      local made
      made=$(mktemp -d)
      strimzi "$made"
      cp "$made"/kafka*.yaml "$dir/crds/"
      rm -rf "$made"
      ;;
    stages)
      local kustomize
      kustomize=$(of_module Dir sigs.k8s.io/kwok@$kwok)/kustomize/stage
      cp -r "$kustomize/node/fast" "$dir/stages/node" && cp -r "$kustomize/pod/fast" "$dir/stages/pod"
      ;;
    *) echo "no such tool: $1" && return 1 ;;
  esac
}

for name in "$@"; do
  [ -f "$dir/log/$name.done" ] && continue
  echo "$(date -u +%T) $name" >&2
  # This runs in a subshell and not as a condition, where `set -e` would have no effect.
  status=0
  (provide "$name") > "$dir/log/$name.log" 2>&1 & wait $! || status=$?
  [ "$status" = 0 ] || { tail -n 5 "$dir/log/$name.log"; echo "$name could not be had, see $dir/log/$name.log"; exit 3; }
  touch "$dir/log/$name.done"
done
