#!/usr/bin/env bash
# kubernetes-pods.sh DIR [self-test]: tests the chart on real pods: a control plane and two nodes (kubelet, containerd,
# runc, CNI, kube-proxy, metrics-server), all in their own namespaces on this machine, so that nothing remains
# afterwards. Postgres and Kafka are pods, too, with TLS; the bank runs in production mode. Under load: a rollout,
# scaling, a drain, killed pods. Tools are kept in DIR; DOCKER_HOST may name the engine that builds the image. The last
# line is "N passed, N failed". Exit code 3: not possible here; the last line gives the reason.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=$(mkdir -p "$1" && cd "$1" && pwd)
source "$here/kubernetes/cluster.sh"
version=$(sed -n 's/^appVersion: "\(.*\)"/\1/p' "$root/deploy/helm/core-banking/Chart.yaml")
images=(core-banking:kubernetes "core-banking:$version" pause:kubernetes postgres:18 apache/kafka:4.1.0)

if [ "${INSIDE:-}" != true ]; then
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] || unavailable 'only root on Linux can run pods'
  reason=$("$here/kubernetes-tools.sh" "$tools" helm kubectl etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy metrics-server cni dnsmasq) || unavailable "$(tail -n 1 <<< "$reason")"
  DOCKER_HOST=$("$here/engine.sh" start "$tools/engine") || unavailable "$DOCKER_HOST"
  export DOCKER_HOST
  stand_ins=$("$here/stand-ins.sh" "$tools") || unavailable "$(tail -n 1 <<< "$stand_ins")"
  echo "Stand-ins for images that cannot be pulled here: ${stand_ins//$'\n'/, }"
  DOCKER_BUILDKIT=0 docker build -q -t core-banking:kubernetes --target production -f "$root/deploy/Dockerfile" "$root"
  docker tag core-banking:kubernetes "core-banking:$version"
  printf 'FROM debian:bookworm-slim\nCMD ["sleep", "infinity"]\n' | DOCKER_BUILDKIT=0 docker build -q -t pause:kubernetes -
  run=$(mktemp -d "${TMPDIR:-/tmp}/bank-pods-XXXXXX")
  for image in "${images[@]}"; do docker save "$image" > "$run/${image//[\/:]/_}.tar"; done
  status=0
  # --kill-child: when the first process of the namespaces ends, all others end too, including the containers.
  INSIDE=true RUN="$run" unshare --net --mount --pid --fork --mount-proc --kill-child "$0" "$tools" "${2:-}" || status=$?
  [ -n "${KEEP:-}" ] || rm -rf "$run"
  [ "$DOCKER_HOST" != "unix://$tools/engine/docker.sock" ] || "$here/engine.sh" stop "$tools/engine"
  exit "$status"
fi

export PATH="$tools/bin:$PATH:/usr/sbin"
run="$RUN" self_test="${2:-}"
source "$here/kubernetes/nodes.sh"
# The first process of a namespace ignores signals that it does not handle.
trap 'exit 1' TERM
trap 'status=$?; [ -z "${KEEP:-}" ] || kubectl get events -A > "$run/events.txt" || true; stop_cluster; exit $status' EXIT
node_addresses=(10.99.0.1 10.99.0.2)
start_network
prepare_metrics
API_SERVER_FLAGS="--bind-address 0.0.0.0 --advertise-address ${node_addresses[0]} --kubelet-preferred-address-types=InternalIP $aggregation" \
  CONTROLLER_FLAGS='--horizontal-pod-autoscaler-sync-period 5s --horizontal-pod-autoscaler-cpu-initialization-period 30s' start_control_plane "$run"
start_node 1 "${images[@]}"
start_node 2 core-banking:kubernetes "core-banking:$version" pause:kubernetes
background "$run/proxy.log" kube-proxy --kubeconfig "$KUBECONFIG" --hostname-override node-1 --proxy-mode iptables --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s
await 'both nodes' 400 eval 'kubectl wait --for=condition=Ready node/node-1 node/node-2 --timeout 1s'
kubectl label node node-1 servers=true > /dev/null
start_metrics

if [ -n "${TRIAL:-}" ]; then
  source "$here/kubernetes/trial.sh"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
  exit
fi

# Creates certificates, and the passwords of broker and database. The chart makes all other secrets.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$run/ca.key" -out "$run/ca.crt" -days 2 -subj /CN=check 2> /dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$run/server.key" -out "$run/server.csr" -subj /CN=servers 2> /dev/null
openssl x509 -req -in "$run/server.csr" -CA "$run/ca.crt" -CAkey "$run/ca.key" -CAcreateserial -days 2 -out "$run/server.crt" -extfile <(echo 'subjectAltName=DNS:*.servers.svc.cluster.local') 2> /dev/null
cat "$run/server.key" "$run/server.crt" "$run/ca.crt" > "$run/both.pem"
secret() { openssl rand -hex 32; }
owner=$(secret) kafka=$(secret)
kubectl create namespace servers > /dev/null
kubectl create namespace bank > /dev/null
kubectl label namespace bank pod-security.kubernetes.io/{enforce,warn}=restricted > /dev/null
kubectl --namespace servers create secret generic certificates --from-file "$run/server.crt" --from-file "$run/server.key" --from-file "$run/both.pem" > /dev/null
kubectl --namespace servers create secret generic postgres --from-literal superuser_password="$(secret)" --from-literal owner_password="$owner" > /dev/null
kubectl --namespace servers create secret generic kafka --from-literal jaas="org.apache.kafka.common.security.plain.PlainLoginModule required user_bank=\"$kafka\";" > /dev/null
kubectl --namespace servers create configmap postgres-init --from-file "$root/deploy/compose/postgres-init.sh" > /dev/null
kubectl --namespace bank create configmap ca --from-file "$run/ca.crt" > /dev/null
kubectl --namespace bank create configmap load --from-file "$here/kubernetes/load.ts" > /dev/null
kubectl --namespace bank create secret generic core-banking-kafka --from-literal password="$kafka" > /dev/null
kubectl --namespace bank create secret generic core-banking-database --from-literal password="$owner" > /dev/null
kubectl apply -f "$here/kubernetes/servers.yaml" > /dev/null
refresh_names
kubectl --namespace servers wait --for=condition=Ready pod/postgres pod/kafka --timeout 900s > /dev/null

source "$here/kubernetes/scenarios.sh"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
