# Sourced by kubernetes.sh and kubernetes-pods.sh: starts a separate Kubernetes control plane in a folder, on 127.0.0.1, and
# reports checks. All processes that were started are ended by their process ids when the script ends.

processes=()
background() { # LOG COMMAND...
  setsid "${@:2}" > "$1" 2>&1 < /dev/null &
  processes+=($!)
}

stop_cluster() {
  local pid
  for pid in "${processes[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${processes[@]}"; do
    for _ in $(seq 1 100); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2> /dev/null || true
  done
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' 2> /dev/null || node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })'; }

# WHAT SECONDS COMMAND...: repeats the command until it succeeds.
await() {
  local what="$1" end=$((SECONDS + $2))
  until "${@:3}" > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "  $what: not within $2 s" >&2; return 1; }
    sleep 0.3
  done
}

# DIR: starts etcd, API server, controllers and scheduler, and exports KUBECONFIG of their administrator.
start_control_plane() {
  local run="$1" api etcd peer
  mkdir -p "$run/etcd"
  api=$(free_port) etcd=$(free_port) peer=$(free_port)
  openssl genrsa -out "$run/sa.key" 2048 2> /dev/null
  echo 'token,admin,admin,system:masters' > "$run/tokens.csv"
  export KUBECONFIG="$run/kubeconfig"
  cat > "$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{ name: check, cluster: { server: "https://127.0.0.1:$api", insecure-skip-tls-verify: true } }]
users: [{ name: admin, user: { token: token } }]
contexts: [{ name: check, context: { cluster: check, user: admin } }]
current-context: check
END
  background "$run/etcd.log" etcd --data-dir "$run/etcd" --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer"
  background "$run/apiserver.log" kube-apiserver --etcd-servers "http://127.0.0.1:$etcd" --secure-port "$api" --bind-address 127.0.0.1 --cert-dir "$run/certs" \
    --service-account-key-file "$run/sa.key" --service-account-signing-key-file "$run/sa.key" --service-account-issuer https://kubernetes.default.svc \
    --token-auth-file "$run/tokens.csv" --authorization-mode RBAC --service-cluster-ip-range 10.96.0.0/16 --allow-privileged=true ${API_SERVER_FLAGS:-}
  await 'the API server' 400 kubectl get --raw /readyz
  background "$run/controllers.log" kube-controller-manager --kubeconfig "$KUBECONFIG" --leader-elect=false --secure-port 0 --service-account-private-key-file "$run/sa.key" --root-ca-file "$run/certs/apiserver.crt" --node-monitor-grace-period 120s ${CONTROLLER_FLAGS:-}
  background "$run/scheduler.log" kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=false --secure-port 0
  await 'the service account of new pods' 240 kubectl get serviceaccount default
}

passed=0 failed=0
# WHAT COMMAND...: one check; its output is shown if it fails.
check() {
  local output
  if output=$("${@:2}" 2>&1); then
    passed=$((passed + 1)); echo "  ✓ $1"
  else
    failed=$((failed + 1)); echo "  ✗ $1"; sed 's/^/      /' <<< "$output" | tail -n 30
  fi
}

# Exit code 3, as everywhere in this folder: not possible here; the last line gives the reason.
unavailable() {
  echo "$1"
  exit 3
}
