# Sourced by kubernetes-pods.sh when the cluster is empty. Cluster and registry are prepared, and then the page is followed.
mkdir -m 777 "$run/volume-1" "$run/volume-2"
kubectl apply -f - > /dev/null <<END
{ "apiVersion": "v1", "kind": "List", "items": [
  { "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "folders", "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } }, "provisioner": "kubernetes.io/no-provisioner" },
  { "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "volume-1" }, "spec": { "storageClassName": "folders", "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "$run/volume-1" } } },
  { "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "volume-2" }, "spec": { "storageClassName": "folders", "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "$run/volume-2" } } } ] }
END
for node in 1 2; do kubectl label node "node-$node" "kubernetes.io/os=linux" --overwrite > /dev/null; done
# This cluster's names are those of a file.
keep_names() { while sleep 0.5; do refresh_names; done; }
keep_names > /dev/null 2>&1 &
processes+=($!)

# FILE HEADING: the commands of a section, as they are written.
commands() { awk -v heading="$2" '/^#+ / { here = $0 ~ heading } /^```/ { code = $0 == "```sh" && here; next } code' "$1"; }
page="$root/docs/kubernetes.md"
if [ -n "$self_test" ]; then
  sed 's/CLIENT:\/\/kafka\.bank/CLIENT:\/\/kafka.elsewhere/' "$root/deploy/kubernetes/trial.yaml" > "$run/trial.yaml"
  page="$run/kubernetes.md"
  sed "s#deploy/kubernetes/trial.yaml#$run/trial.yaml#; s/15m/3m/" "$root/docs/kubernetes.md" > "$page"
fi
cd "$root"
export REPOSITORY=docker.io/library/core-banking
from=$EPOCHREALTIME
since() { awk "BEGIN { printf \"%.0f s\", $EPOCHREALTIME - $from }"; }
follow() { # the commands in one shell, as one person has
  cat > "$run/follow.sh" <<END
set -euo pipefail
cd "$run" && ln -sfn "$root/deploy" deploy
$(commands "$page" '^## A trial')
until curl -s "\$BASE_URL/" > /dev/null; do sleep 0.2; done
curl -s "\$BASE_URL/" -H "x-api-key: \$API_KEY"; echo
$(commands "$root/README.md" '^## A first deposit' | sed -n '/^CLIENT_ID=/,$p')
echo; kill %1
END
  bash "$run/follow.sh" > "$run/follow.log" 2>&1 || { tail -n 20 "$run/follow.log"; kubectl -n bank get pods -o wide; kubectl -n bank logs --all-containers --tail=5 -l app.kubernetes.io/name=core-banking; kubectl -n bank get events | tail -n 20; return 1; }
}
echo 'A trial, as docs/kubernetes.md says'
check 'its commands lead from an empty cluster to an API key and the requests of the README' follow
echo "  from the first command to the deposit: $(since)"
check 'the deposit was posted' grep -q '"status":"Completed"' "$run/follow.log"
check 'GET / says that it is a trial' grep -q 'as a trial: not for real money' "$run/follow.log"
logs() { local one; for one in gateway ledger accounts webhooks; do kubectl -n bank logs "deployment/bank-$one" | grep -q '"mode":"trial","msg":"started"' || { echo "$one"; kubectl -n bank logs "deployment/bank-$one" | tail -n 5; return 1; }; done; }
check 'so does the log of each service' logs
check 'each pod has the secrets of its own service, and no pod the master key' eval '[ -z "$(kubectl -n bank get pods -o jsonpath="{..projected.sources[*].secret.name} {..secretName}" | tr " " "\n" | grep master)" ] && kubectl -n bank exec deployment/bank-gateway -- ls /run/core-banking | tr "\n" " " | grep -qx "API_KEY_PEPPER API_KEY_PUBLIC_KEYS GATEWAY_MAC_KEYS WEBHOOK_SECRET_KEYS "'
check 'helm test passes' helm test bank --namespace bank
again() { local before; before=$(kubectl -n bank get pods -l app.kubernetes.io/component -o name | grep -v -e migrate -e topics -e secrets -e test | sort) && helm upgrade bank deploy/helm/core-banking -n bank -f deploy/helm/core-banking/values-trial.yaml --set image.repository="$REPOSITORY" --wait --timeout 10m && [ "$before" = "$(kubectl -n bank get pods -l app.kubernetes.io/component -o name | grep -v -e migrate -e topics -e secrets -e test | sort)" ]; }
check 'the same command again keeps every secret and every pod' again
check 'the books balance' kubectl -n bank exec deployment/bank-ledger -- node verify-books
