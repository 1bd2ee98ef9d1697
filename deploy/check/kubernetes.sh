#!/usr/bin/env bash
# kubernetes.sh DIR [self-test]: tests the chart against its own real API server (etcd, kube-apiserver, controllers,
# scheduler) with kwok's simulated nodes, which report pods as running without running them. Tools are kept in DIR
# (kubernetes-tools.sh). The last line is "N passed, N failed". Exit code 3: not possible here; the last line gives the
# reason.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
chart="$here/../helm/core-banking"
self_test="${2:-}"
tools=$(mkdir -p "$1" && cd "$1" && pwd)
source "$here/kubernetes/cluster.sh"

reason=$("$here/kubernetes-tools.sh" "$tools" helm kubectl definitions stages etcd kube-apiserver kube-controller-manager kube-scheduler kwok) || unavailable "$(tail -n 1 <<< "$reason")"
export PATH="$tools/bin:$PATH"
run=$(mktemp -d)
trap 'stop_cluster; rm -rf "$run"' EXIT
if [ -n "$self_test" ]; then
  # The chart's files are symbolic links to files outside its folder.
  cp -rL "$chart" "$run/chart" && chart="$run/chart"
  sed -i 's/readinessProbe:/readinesProbe:/' "$chart/templates/deployments.yaml"
fi

start_control_plane "$run"
kubectl apply --server-side -f "$tools/crds" > /dev/null
# Without a lease that is renewed, every node is lost 50 s after it was added.
background "$run/kwok.log" kwok --kubeconfig "$KUBECONFIG" --node-lease-duration-seconds 40 --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake --config "$tools/stages/node" --config "$tools/stages/pod"
for n in 1 2 3; do
  kubectl apply -f - > /dev/null <<END
{ "apiVersion": "v1", "kind": "Node",
  "metadata": { "name": "node-$n", "annotations": { "kwok.x-k8s.io/node": "fake" }, "labels": { "kubernetes.io/hostname": "node-$n", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "zone-$n" } },
  "status": { "allocatable": { "cpu": "8", "memory": "16Gi", "pods": "110" }, "capacity": { "cpu": "8", "memory": "16Gi", "pods": "110" } } }
END
done
for namespace in bank dry; do
  kubectl create namespace "$namespace" > /dev/null
  kubectl label namespace "$namespace" pod-security.kubernetes.io/{enforce,warn}=restricted > /dev/null
done

# The PriorityClass that the values name; a pod with a missing one is rejected.
for class in bank bank-books; do kubectl create priorityclass "$class" --value 1000 > /dev/null; done

echo 'The chart'
for values in "$chart"/ci/*-values.yaml "$chart/values-trial.yaml" "$here/../kubernetes/values.yaml"; do
  name=$(basename "${values%-values.yaml}")
  check "lint, $name" helm lint --strict "$chart" -f "$values"
  # The API server warns about pods that violate the namespace's `restricted` policy.
  dry_run() { helm template bank "$chart" --namespace dry -f "$values" > "$run/$name.yaml" && kubectl apply --dry-run=server --namespace dry -f "$run/$name.yaml" > "$run/dry.log" 2>&1 || { cat "$run/dry.log"; return 1; }; ! grep -i warning "$run/dry.log"; }
  check "$(kubectl get --raw /version | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p') takes it, and finds its pods restricted, $name" dry_run
done
# By now, the planted defect must have been found.
if [ -n "$self_test" ]; then echo "$passed passed, $failed failed"; [ "$failed" = 0 ]; exit; fi

echo 'Brokers, database and secrets'
examples="$here/../kubernetes"
for file in "$examples"/{namespace,secrets,kafka,postgres}.yaml "$here"/../kafka/{users,topics}.yaml; do
  check "$(basename "$file") is as its operators define it" kubectl apply --dry-run=server --namespace bank -f "$file"
done
misspelled() { ! sed "s/\b$2:/${2}z:/" "$1" | kubectl apply --dry-run=server --namespace bank -f - > "$run/misspelled.log" 2>&1 && grep -q "unknown field .*${2}z" "$run/misspelled.log" || { tail -n 5 "$run/misspelled.log"; return 1; }; }
for field in secrets:sourceRef secrets:symbols kafka:roles kafka:entityOperator postgres:instances postgres:retentionPolicy postgres:isWALArchiver ../kafka/users:operations ../kafka/topics:partitions; do
  check "which would find a misspelled ${field#*:} in ${field%:*}.yaml" misspelled "$examples/${field%:*}.yaml" "${field#*:}"
done
mounted() { helm template bank "$chart" --namespace bank -f "$examples/values.yaml" | "$here/../../node_modules/.bin/node" "$here/kubernetes/secrets.ts"; }
check 'every key of a Secret that a pod or an autoscaler reads is made, and each pod reads the Secret of its own service' mounted

echo 'Values that are refused'
refused() { # EXPECTED WORDS, HELM ARGUMENTS...
  local output
  ! output=$(helm template bank "$chart" -f "$chart/ci/least-values.yaml" "${@:2}" 2>&1) && grep -qE -- "$1" <<< "$output" || { echo "$output" | tail -n 5; return 1; }
}
check 'no brokers' refused 'kafka.brokers is missing' --set kafka.brokers=
check 'no database' refused 'database.host is missing' --set database.host=
check 'an unknown value' refused 'replicaCount' --set gateway.replicaCount=3
check 'a misspelled variable' refused 'BACKDATE_DAYZ' --set ledger.config.BACKDATE_DAYZ=1
check 'a secret among the variables' refused 'API_KEY_PEPPER' --set gateway.config.API_KEY_PEPPER=x
check 'more processes than partitions' refused 'maxReplicas' --set ledger.autoscaling.maxReplicas=13
check 'no process' refused 'replicas' --set accounts.replicas=0
check 'an invalid digest' refused 'digest' --set image.digest=sha256:abc
check 'a CA from both a Secret and a ConfigMap' refused 'trustedCa' --set trustedCa.kafka.secretName=a,trustedCa.kafka.configMapName=b,trustedCa.kafka.key=c
check 'an invalid name of the database' refused 'name' --set-string database.name='x; drop'
check 'a selector label among the labels' refused 'app.kubernetes.io/name' --set 'commonLabels.app\.kubernetes\.io/name=x'
check 'a mount over the secrets' refused 'mountPath' --set 'pod.volumeMounts[0].name=x,pod.volumeMounts[0].mountPath=/run/core-banking'

placed() { helm template bank "$chart" -f "$chart/ci/$1-values.yaml" | "$here/../../node_modules/.bin/node" "$here/kubernetes/placement.ts" "$1"; }
check 'pods are spread over zones, then nodes, and have their own service accounts' placed least
check 'service accounts, labels, scheduling, priorities and volumes come from the values of the service, else from the common ones' placed everything

nobody() {
  local empty='networkPolicy.httpFrom=[],networkPolicy.dashboardFrom=[],networkPolicy.metricsFrom=[],networkPolicy.dnsTo=[],networkPolicy.kafka.to=[],networkPolicy.postgres.to=[],networkPolicy.issuer.to=[],networkPolicy.receivers.to=[]'
  helm template bank "$chart" -f "$chart/ci/everything-values.yaml" --set-json "$empty" --show-only templates/network-policies.yaml > "$run/policies.yaml" && ! grep -n '\[\]' "$run/policies.yaml"
}
check 'an empty list of a network policy means nobody, not everybody' nobody

variables() { helm template bank "$chart" -f "$chart/ci/everything-values.yaml" --show-only templates/deployments.yaml | awk -v name="bank-$1" '/^  name: / {own = $2 == name} own' | grep -o -E '(API_URL|KAFKA_[A-Z_]+|SESSION_SECRET|API_KEY_PEPPER): .*|- \{ name: (SESSION_SECRET|API_KEY_PEPPER)_FILE' | tr '\n' ' '; }
check 'the dashboard knows the gateway, and neither brokers nor the secrets of the gateway' eval 'case "$(variables dashboard)" in *KAFKA_*|*API_KEY_PEPPER*) false;; *"http://bank-gateway"*SESSION_SECRET*) true;; *) false;; esac'
check 'webhooks knows the address at which consumers fetch the schemas of events' eval 'case "$(variables webhooks)" in *"API_URL: \"https://"*) true;; *) false;; esac'
urls() { helm template bank "$chart" -f "$chart/ci/least-values.yaml" | grep -cE 'DATABASE_URL.*"postgres://[a-z_]+@postgres:5432/core_banking\?password_file=/run/core-banking/(MIGRATION_)?DATABASE_PASSWORD&sslmode=verify-full"'; }
check 'the URL of each database names the file of its password' eval '[ "$(urls)" = 9 ]'
check 'the gateway has no secret of sessions' eval 'case "$(variables gateway)" in *SESSION_SECRET*) false;; *API_KEY_PEPPER*) true;; *) false;; esac'

echo 'On simulated nodes'
install() { helm upgrade --install bank "$chart" --namespace bank -f "$chart/ci/least-values.yaml" --wait --timeout 900s "$@"; }
count() { kubectl --namespace bank get "$@" -o name | wc -l; }
check 'helm install --wait runs the jobs, then all pods become ready' install
check 'the processes of a service are on different nodes' eval '[ "$(kubectl --namespace bank get pods -l app.kubernetes.io/component=ledger -o jsonpath="{.items[*].spec.nodeName}" | tr " " "\n" | sort -u | wc -l)" = 2 ]'
check 'no pod but that of the job secrets has a token' eval '[ -z "$(kubectl --namespace bank get pods -l "app.kubernetes.io/component!=secrets" -o jsonpath="{..serviceAccountToken}")" ]'
check 'helm upgrade runs the jobs again and replaces the pods' eval 'before=$(kubectl --namespace bank get pods -l app.kubernetes.io/component=ledger -o name) && install --set ledger.config.BACKDATE_DAYS=30 && [ "$before" != "$(kubectl --namespace bank get pods -l app.kubernetes.io/component=ledger -o name)" ]'
check 'an upgrade that changes nothing replaces nothing' eval 'before=$(kubectl --namespace bank get pods -l app.kubernetes.io/component -o name | grep -v -e migrate -e topics -e secrets | sort) && install --set ledger.config.BACKDATE_DAYS=30 && [ "$before" = "$(kubectl --namespace bank get pods -l app.kubernetes.io/component -o name | grep -v -e migrate -e topics -e secrets | sort)" ]'

echo 'Secrets'
# The nodes are simulated, so the job's program runs here, with the rights of the job's service account.
of_cluster() { kubectl --namespace bank get secret "$1" -o jsonpath="{.data.$2}" | base64 --decode; }
make_secrets() {
  mkdir -p "$run/account"
  kubectl --namespace bank create token bank-secrets > "$run/account/token" && echo bank > "$run/account/namespace"
  env NODE_EXTRA_CA_CERTS="$run/certs/apiserver.crt" SERVICE_ACCOUNT_DIR="$run/account" KUBERNETES_URL="$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')" \
    $(kubectl --namespace bank get job bank-secrets -o jsonpath='{range .spec.template.spec.containers[0].env[*]}{.name}={.value}{"\n"}{end}' | grep -E '^(BANK_MODE|MASTER_SECRET|SECRETS)=') \
    "$here/../../node_modules/.bin/node" "$here/../secrets/kubernetes.ts"
}
digests() { kubectl --namespace bank get secrets -l app.kubernetes.io/component=secrets -o jsonpath='{range .items[*]}{.metadata.name}{.data}{"\n"}{end}'; }
pods() { kubectl --namespace bank get pods -l app.kubernetes.io/component -o name | grep -v -e migrate -e topics -e secrets | sort; }
check 'the job makes a master key and derives a Secret for each service' eval 'make_secrets && [ "$(kubectl --namespace bank get secrets -l app.kubernetes.io/component=secrets -o name | tr "\n" " ")" = "secret/bank-accounts secret/bank-gateway secret/bank-ledger secret/bank-master secret/bank-webhooks " ]'
check 'a second run changes nothing' eval 'before=$(digests) && make_secrets && [ "$before" = "$(digests)" ]'
check 'an upgrade after the first run replaces no pod' eval 'before=$(pods) && install --set ledger.config.BACKDATE_DAYS=30 && [ "$before" = "$(pods)" ]'
kubectl --namespace bank create secret generic other --from-literal key=value > /dev/null
forbidden() { ! kubectl auth can-i --quiet --as system:serviceaccount:bank:bank-secrets --namespace bank "$@"; }
check 'its service account reads and changes these Secrets only' eval 'forbidden get secret/other && forbidden list secrets && forbidden delete secret/bank-master && forbidden patch secret/bank-master && forbidden create pods && ! forbidden get secret/bank-master'
rotate() {
  local old new
  new=$(openssl rand -hex 32)
  old=$(of_cluster bank-master MASTER_KEYS)
  kubectl --namespace bank patch secret bank-master --type merge --patch "{ \"stringData\": { \"MASTER_KEYS\": \"$new,$old\" } }" || return 1
  before=$(of_cluster bank-gateway GATEWAY_MAC_KEYS) pods=$(pods)
  make_secrets && [ "$(of_cluster bank-gateway GATEWAY_MAC_KEYS | cut -d , -f 2)" = "$before" ] && install --set ledger.config.BACKDATE_DAYS=30 && [ -z "$(comm -12 <(echo "$pods") <(pods))" ]
}
check 'a second master key is used first, the keys of the old one remain, and the upgrade replaces every pod' rotate
lost() { kubectl --namespace bank delete secret bank-master && ! make_secrets > "$run/lost.log" 2>&1 && grep -q 'bank-master with MASTER_KEYS is missing' "$run/lost.log" || { cat "$run/lost.log"; return 1; }; }
check 'without the master key the job refuses to make another bank of it' lost
login() { helm template bank "$chart" -f "$chart/ci/existing-values.yaml" --set test.existingSecret=; }
check 'with secrets of its own a bank has neither the job nor its rights' eval '! login | grep -E "kind: Role|name: bank-secrets$" | grep -v NetworkPolicy | grep -q Role'

# Without capacity elsewhere, the first eviction leaves one ready ledger; the budget then refuses the second eviction.
held_back() {
  local nodes node
  nodes=$(kubectl --namespace bank get pods -l app.kubernetes.io/component=ledger -o jsonpath='{.items[*].spec.nodeName}')
  kubectl cordon node-1 node-2 node-3
  node=${nodes%% *}
  kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout 60s || return 1
  node=${nodes##* }
  ! kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout 15s > "$run/drain.log" 2>&1 || { cat "$run/drain.log"; return 1; }
  grep -q "would violate the pod's disruption budget" "$run/drain.log" || { cat "$run/drain.log"; return 1; }
  [ "$(kubectl --namespace bank get deployment bank-ledger -o jsonpath='{.status.readyReplicas}')" = 1 ]
}
check 'the disruption budget delays a drain' held_back
check 'and continues once there is capacity' eval 'kubectl uncordon node-1 node-2 node-3 && kubectl --namespace bank rollout status deployment/bank-ledger --timeout 60s && kubectl drain "$(kubectl --namespace bank get pods -l app.kubernetes.io/component=ledger -o jsonpath="{.items[0].spec.nodeName}")" --ignore-daemonsets --delete-emptydir-data --timeout 60s'
check 'helm uninstall leaves the jobs of the hooks and the secrets' eval 'helm uninstall bank --namespace bank --wait && [ "$(count secrets -l app.kubernetes.io/component=secrets)" = 4 ] && [ "$(count deployments,services,configmaps,networkpolicies,poddisruptionbudgets)" = 1 ]'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
