# Sourced by kubernetes-pods.sh, within its own namespaces: the nodes of the cluster and the DNS names of its Services.

# Pods are routed, with one pair of interfaces each; the addresses of the nodes are on the loopback interface.
start_network() {
  local address
  ip link set lo up
  for address in "${node_addresses[@]}"; do ip address add "$address/32" dev lo; done
  echo 1 > /proc/sys/net/ipv4/ip_forward
  mkdir -p "$run/cni"
  cat > "$run/cni/10-pods.conflist" <<END
{ "cniVersion": "1.0.0", "name": "pods", "plugins": [
  { "type": "ptp", "ipMasq": false, "ipam": { "type": "host-local", "dataDir": "$run/ipam", "ranges": [[{ "subnet": "10.98.0.0/16" }]], "routes": [{ "dst": "0.0.0.0/0" }] } } ] }
END
  : > "$run/hosts"
  : > "$run/resolv.conf"
  background "$run/dnsmasq.log" dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --no-hosts --no-resolv --local=/cluster.local/ --listen-address="${node_addresses[0]}" --bind-interfaces --addn-hosts="$run/hosts" --pid-file="$run/dnsmasq.pid"
}

# NUMBER IMAGE...: a containerd with these images and a kubelet.
start_node() {
  local node="$run/node-$1" address="${node_addresses[$1 - 1]}" image
  mkdir -p "$node"
  cat > "$node/containerd.toml" <<END
version = 2
root = "$node/containerd"
state = "$node/state"
[grpc]
  address = "$node/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:kubernetes"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(dirname "$(ls /usr/lib/cni/ptp /opt/cni/bin/ptp 2> /dev/null | head -n 1)")"
    conf_dir = "$run/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
END
  "$here/weight.sh" k8s.io
  background "$node/containerd.log" containerd --config "$node/containerd.toml"
  await "containerd of node-$1" 60 ctr -a "$node/containerd.sock" version
  for image in "${@:2}"; do ctr -a "$node/containerd.sock" -n k8s.io images import "$run/${image//[\/:]/_}.tar" > /dev/null; done
  # There are cgroups only for containers, not for pods. Otherwise the two kubelets would remove each other's.
  cat > "$node/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $address
healthzPort: 0
readOnlyPort: 0
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
containerRuntimeEndpoint: unix://$node/containerd.sock
clusterDNS: [${node_addresses[0]}]
clusterDomain: cluster.local
podLogsDir: $node/logs
resolvConf: $run/resolv.conf
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
evictionHard: { memory.available: 100Mi }
nodeStatusUpdateFrequency: 5s
END
  background "$node/kubelet.log" kubelet --config "$node/kubelet.yaml" --kubeconfig "$KUBECONFIG" --root-dir "$node/kubelet" --hostname-override "node-$1" --node-ip "$address" --cert-dir "$node/certs"
}

# dnsmasq replaces CoreDNS; it receives the names of all Services when they change.
refresh_names() {
  kubectl get services -A -o go-template='{{ range .items }}{{ if ne .spec.clusterIP "None" }}{{ .spec.clusterIP }} {{ .metadata.name }}.{{ .metadata.namespace }}.svc.cluster.local{{ "\n" }}{{ end }}{{ end }}' > "$run/hosts"
  local service
  for service in $(kubectl get services -A -o jsonpath='{range .items[?(@.spec.clusterIP=="None")]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}'); do
    kubectl --namespace "${service%/*}" get endpointslices -l "kubernetes.io/service-name=${service#*/}" -o jsonpath='{range .items[*].endpoints[*]}{.addresses[0]}{"\n"}{end}' | sed "s#\$# ${service#*/}.${service%/*}.svc.cluster.local#" >> "$run/hosts"
  done
  kill -HUP "$(cat "$run/dnsmasq.pid")"
}

# A certificate with which the API server forwards requests for metrics, and the flags for it in $aggregation.
prepare_metrics() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$run/front.key" -out "$run/front.crt" -days 2 -subj /CN=front-proxy 2> /dev/null
  aggregation="--requestheader-client-ca-file $run/front.crt --requestheader-allowed-names front-proxy --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group --requestheader-extra-headers-prefix X-Remote-Extra- --proxy-client-cert-file $run/front.crt --proxy-client-key-file $run/front.key --enable-aggregator-routing=true"
}

# metrics-server, outside the pods: it reads the CPU of containers from the kubelets for HorizontalPodAutoscalers.
start_metrics() {
  background "$run/metrics.log" metrics-server --kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG" --secure-port 4443 --cert-dir "$run/metrics" --kubelet-insecure-tls --kubelet-preferred-address-types InternalIP --metric-resolution 15s
  kubectl apply -f - > /dev/null <<END
apiVersion: v1
kind: Service
metadata: { name: metrics-server, namespace: kube-system }
spec: { ports: [{ port: 443, targetPort: 4443 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: metrics-server, namespace: kube-system, labels: { kubernetes.io/service-name: metrics-server } }
addressType: IPv4
ports: [{ name: '', port: 4443 }]
endpoints: [{ addresses: ['${node_addresses[0]}'] }]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: { name: v1beta1.metrics.k8s.io }
spec: { group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: { name: metrics-server, namespace: kube-system } }
END
}
