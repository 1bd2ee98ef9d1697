# Sourced by kubernetes-pods.sh after the cluster, Postgres, and Kafka have started.
chart="$here/../helm/core-banking"
bank() { kubectl --namespace bank "$@"; }
cat > "$run/values.yaml" <<'END'
image: { repository: docker.io/library/core-banking, tag: kubernetes, pullPolicy: Never }
host: bank.example
kafka: { brokers: 'kafka.servers.svc.cluster.local:9093', user: bank }
database: { host: postgres.servers.svc.cluster.local }
config: { KAFKA_SASL_MECHANISM: plain }
trustedCa: { kafka: { configMapName: ca, key: ca.crt }, postgres: { configMapName: ca, key: ca.crt } }
# One broker can only store one replica, which production mode refuses.
pod: { env: [{ name: BANK_MODE, value: trial }] }
gateway: { config: { RATE_LIMIT_PER_MINUTE: 0, AUTH_FAILURES_PER_MINUTE: 0 } }
test: { existingSecret: bank-api-key }
END
seconds() { local from=$EPOCHREALTIME; "$@" > "$run/output.log" 2>&1 || { tail -n 20 "$run/output.log"; return 1; }; awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $from }"; }
install() { helm upgrade --install bank "$chart" --namespace bank -f "$run/values.yaml" --wait --timeout 1800s "$@" > "$run/helm.log" 2>&1 || { cat "$run/helm.log"; bank get pods -o wide; bank get events | tail -n 20; return 1; }; }
all_there() { local name; for name in gateway ledger accounts webhooks; do bank rollout status "deployment/bank-$name" --timeout 900s || return 1; done > /dev/null; }

# WHAT MAX-FAILED COMMAND...: reports the responses that callers receive while the command runs. $lanes and $pause may give
# the number of callers and the milliseconds between two requests of each.
under_load() {
  local summary took
  bank delete pod load --ignore-not-found --wait > /dev/null
  sed "s/'4'/'${lanes:-4}'/; s/'200'/'${pause:-200}'/" "$here/kubernetes/load.yaml" | bank apply -f - > /dev/null
  await 'the load' 400 bank exec load -- test -e /tmp/under-way || { bank logs load; return 1; }
  took=$(seconds "${@:3}") || { echo "$took"; return 1; }
  sleep 3
  bank exec load -- touch /tmp/stop
  bank wait --for=jsonpath='{.status.phase}'=Succeeded pod/load --timeout 400s > /dev/null
  summary=$(bank logs load | tail -n 1)
  echo "$1: $took, $summary" | tee -a "$run/results.txt" >&3
  grep -q '"each_once":true' <<< "$summary" && [ "$(sed 's/.*"failed":\([0-9]*\).*/\1/' <<< "$summary")" -le "$2" ]
}
exec 3>&1

rollout() { install --set-string pod.annotations.round="$1" && all_there; }
scale() {
  local count name
  for count in 1 3 1 2; do
    bank scale --replicas "$count" deployment/bank-gateway deployment/bank-ledger deployment/bank-accounts && all_there || return 1
    sleep 2
  done
}
drain() { kubectl drain node-2 --ignore-daemonsets --delete-emptydir-data --timeout 900s && all_there && kubectl uncordon node-2; }
# The process is killed from outside the pod, as by the kernel's OOM killer. Deleting a pod would stop it gracefully.
kill_one() {
  local pod id node
  pod=$(bank get pods -l "app.kubernetes.io/component=$1" -o name | head -n 1)
  id=$(bank get "$pod" -o jsonpath='{.status.containerStatuses[0].containerID}') node=$(bank get "$pod" -o jsonpath='{.spec.nodeName}')
  kill -9 "$(ctr -a "$run/$node/containerd.sock" -n k8s.io task ls | awk -v id="${id#containerd://}" '$1 == id { print $2 }')"
  bank wait "$pod" --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 --timeout 400s && bank wait "$pod" --for=condition=Ready --timeout 600s && all_there
}

# The CPU of the gateways together in thousandths, as HorizontalPodAutoscalers read it.
cpu() {
  kubectl get --raw '/apis/metrics.k8s.io/v1beta1/namespaces/bank/pods?labelSelector=app.kubernetes.io/component%3Dgateway' |
    grep -o '"cpu":"[0-9]*[num]\?"' | cut -d '"' -f 4 | awk '/n$/ { sum += $1 / 1e6; next } /u$/ { sum += $1 / 1e3; next } { sum += $1 } END { print int(sum) }'
}
gateways() { bank get deployment bank-gateway -o jsonpath='{.status.readyReplicas}'; }
are_gateways() { await "$1 gateways, now $(gateways)" 900 eval "[ \"\$(gateways)\" = $1 ]" || { bank describe hpa bank-gateway | tail -n 20; return 1; }; }
# The chart's HorizontalPodAutoscaler, with three times the CPU that a gateway needs without load as its target. The chart
# keeps two gateways and waits for ten minutes before it stops one; here it is one, and half a minute.
autoscale() {
  local idle
  await 'metrics of the gateways' 240 eval '[ "$(cpu)" -gt 0 ]' || { tail -n 5 "$run/metrics.log"; return 1; }
  sleep 60
  idle=$(cpu)
  install --set "gateway.autoscaling.enabled=true,gateway.autoscaling.maxReplicas=3,gateway.autoscaling.averageCpu=$((3 * (idle / 2 + 1)))m" || return 1
  bank patch hpa bank-gateway --type merge --patch '{ "spec": { "minReplicas": 1, "behavior": { "scaleDown": { "stabilizationWindowSeconds": 30, "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 15 }] } } } }' &&
    are_gateways 1
}

echo 'On real pods'
took=''
check 'helm install --wait creates topics and schemas, then all pods become ready, in trial mode with TLS' eval 'took=$(seconds install) && refresh_names && echo "install: $took" >&3'
first_key() {
  local key
  key=$(bank get secret bank-gateway -o jsonpath='{.data.API_KEY_PEPPER}' | base64 --decode | bank exec -i deployment/bank-accounts -- env API_KEY_PEPPER_FILE=/dev/stdin node api-key | grep -o 'cbk_[^ ]*') || return 1
  bank create secret generic bank-api-key --from-literal API_KEY="$key"
}
check 'the first API key is created as the notes describe' first_key
sleep 3
check 'helm test: every process is ready, and a request is answered' helm test bank --namespace bank --logs
check 'a posting succeeds' under_load 'smoke' 0 sleep 5
if [ -n "$self_test" ]; then
  check 'a planted duplicate posting is found' under_load 'planted' 0 bank exec load -- touch /tmp/book-twice
  return
fi
check 'no request fails while all services are rolled out under load' under_load 'rollout' 0 rollout 2
check 'no request fails while services are scaled from 2 to 1 to 3 to 1 to 2 under load' under_load 'scaling' 0 scale
check 'no request fails while a node is drained under load' under_load 'drain' 0 drain
check 'no container was restarted meanwhile' eval '[ -z "$(bank get pods -o jsonpath="{range .items[*].status.containerStatuses[*]}{.restartCount}{\"\n\"}{end}" | grep -v "^0$")" ]'
check 'every request is executed once although a ledger is killed under load' under_load 'ledger killed' 9999 kill_one ledger
check 'every request is executed once although accounts is killed under load' under_load 'accounts killed' 9999 kill_one accounts
check 'every request is executed once although a gateway is killed under load' under_load 'gateway killed' 9999 kill_one gateway
check 'without load the HorizontalPodAutoscaler keeps one gateway' autoscale
check 'under load it starts three gateways, and no request fails' eval "lanes=24 pause=10 under_load 'autoscaled out' 0 are_gateways 3"
check 'afterwards it stops two of them, and no request of the remaining callers fails' eval "lanes=1 pause=1000 under_load 'autoscaled in' 0 are_gateways 1"
check 'the books balance' eval 'bank exec deployment/bank-ledger -- node verify-books'
