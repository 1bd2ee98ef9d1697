{{/*
Every helper takes a dict: root (the chart's context) and component (gateway, dashboard, ledger, accounts, webhooks,
migrate-ledger, migrate-accounts, migrate-webhooks, topics, secrets, test).
*/}}

{{- define "core-banking.name" -}}
{{ printf "%s-%s" .root.Release.Name .component | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "core-banking.selector" -}}
app.kubernetes.io/name: core-banking
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "core-banking.labels" -}}
{{ include "core-banking.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* How the pods of a component are placed: its own values, and those of all pods. Lists and maps are joined. */}}
{{- define "core-banking.placing" -}}
{{- $all := .root.Values.pod -}}
{{- $own := (index .root.Values .component | default dict).pod | default dict -}}
{{- $placing := dict "affinity" ($own.affinity | default $all.affinity) "priorityClassName" ($own.priorityClassName | default $all.priorityClassName) "topologySpreadConstraints" ($own.topologySpreadConstraints | default $all.topologySpreadConstraints) "serviceAccount" (deepCopy $all.serviceAccount) -}}
{{- range $name, $value := $own.serviceAccount }}{{ $_ := set $placing.serviceAccount $name $value }}{{ end -}}
{{- range $name := list "labels" "annotations" "nodeSelector" }}{{ $_ := set $placing $name (merge dict (index $own $name | default dict) (index $all $name)) }}{{ end -}}
{{- range $name := list "tolerations" "env" "volumes" "volumeMounts" }}{{ $_ := set $placing $name (concat (index $all $name) (index $own $name | default list)) }}{{ end -}}
{{ toJson $placing }}
{{- end }}

{{/* Labels of a pod: its selector labels, then the labels from the values, which the schema prevents from overriding them. */}}
{{- define "core-banking.podLabels" -}}
{{ include "core-banking.selector" . }}
{{- with merge dict (include "core-banking.placing" . | fromJson).labels .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "core-banking.serviceAccount" -}}
{{- $own := (include "core-banking.placing" . | fromJson).serviceAccount -}}
{{ $own.name | default (ternary (include "core-banking.name" .) "default" $own.create) }}
{{- end }}

{{/* Topology spread constraints. They count only pods of this version, because a rollout is about to remove the others. */}}
{{- define "core-banking.spread" -}}
{{- $counted := dict "labelSelector" (dict "matchLabels" (include "core-banking.selector" . | fromYaml)) "matchLabelKeys" (list "pod-template-hash") -}}
{{- range (include "core-banking.placing" . | fromJson).topologySpreadConstraints }}
- {{ merge dict . $counted | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{- define "core-banking.image" -}}
{{- with .root.Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The service to which a component belongs: a migration to the service whose schema it makes. */}}
{{- define "core-banking.service" -}}
{{ trimPrefix "migrate-" .component }}
{{- end }}

{{/* The Secret of a service: one that the values name, or the one that the job `secrets` makes. */}}
{{- define "core-banking.secretName" -}}
{{- $service := include "core-banking.service" . -}}
{{- if .root.Values.existingSecret }}{{ replace "{service}" $service .root.Values.existingSecret }}{{ else }}{{ .root.Release.Name }}-{{ $service }}{{ end }}
{{- end }}

{{/* The services. There is a dashboard if it is configured. */}}
{{- define "core-banking.services" -}}
{{ concat (list "gateway") (ternary (list "dashboard") list (hasKey .Values.dashboard.config "PUBLIC_URL")) (list "ledger" "accounts" "webhooks") | toJson }}
{{- end }}

{{- define "core-banking.usesKafka" -}}
{{ if has .component (list "gateway" "ledger" "accounts" "webhooks" "topics") }}true{{ end }}
{{- end }}

{{- define "core-banking.usesPostgres" -}}
{{ if has (include "core-banking.service" .) (list "ledger" "accounts" "webhooks") }}true{{ end }}
{{- end }}

{{/* The URL of the database for a user, whose password is in the file of this variable. */}}
{{- define "core-banking.databaseUrl" -}}
{{- $database := .root.Values.database -}}
postgres://{{ .user }}@{{ $database.host }}:{{ $database.port }}/{{ $database.name }}?password_file=/run/core-banking/{{ .password }}
{{- if eq .root.Values.mode "production" }}&sslmode=verify-full{{ if .root.Values.trustedCa.postgres.key }}&sslrootcert=/run/core-banking/postgres-ca.crt{{ end }}{{ end }}
{{- end }}

{{/* Variables that are not secret: the shared ones, overridden by those of this process. */}}
{{- define "core-banking.config" -}}
{{- $values := .root.Values -}}
{{- $production := eq $values.mode "production" -}}
{{- $config := dict "BANK_MODE" $values.mode -}}
{{- if include "core-banking.usesKafka" . }}
{{- $_ := set $config "KAFKA_BROKERS" $values.kafka.brokers }}
{{- if and $production (not $values.trustedCa.kafka.key) }}{{ $_ := set $config "KAFKA_SSL_CA" "system" }}{{ end }}
{{- if and $production (not $values.kafkaClientCertificate) }}{{ $_ := set $config "KAFKA_SASL_MECHANISM" "scram-sha-512" }}{{ end }}
{{- if and $production $values.kafka.existingSecret }}{{ $_ := set $config "KAFKA_SASL_USERNAME" (replace "{service}" .component $values.kafka.user) }}{{ end }}
{{- end }}
{{- if and (include "core-banking.usesPostgres" .) $values.database.host }}
{{- $_ := set $config "DATABASE_URL" (include "core-banking.databaseUrl" (dict "root" .root "user" (printf "%s_%s" $values.database.name (include "core-banking.service" .)) "password" "DATABASE_PASSWORD")) }}
{{- if hasPrefix "migrate-" .component }}{{ $_ := set $config "MIGRATION_DATABASE_URL" (include "core-banking.databaseUrl" (dict "root" .root "user" $values.database.user "password" "MIGRATION_DATABASE_PASSWORD")) }}{{ end }}
{{- end }}
{{- if eq .component "gateway" }}
{{- /* Nothing else may connect to a gateway: the network policy admits the Ingress controller and the dashboard. */ -}}
{{- $_ := set $config "TRUST_PROXY" (ternary "uniquelocal" "none" (ne $values.host "")) }}
{{- end }}
{{- if and (eq .component "webhooks") $values.host }}{{ $_ := set $config "API_URL" (printf "https://%s" $values.host) }}{{ end }}
{{- /* The dashboard shares with the gateway what it says about the bank, and the issuer. It has no brokers. */ -}}
{{- if eq .component "dashboard" }}
{{- $config = mergeOverwrite $config (pick $values.config "LOG_LEVEL") (pick $values.gateway.config "JWT_ISSUER" "BANK_NAME" "BANK_LOCALE" "BANK_TIME_ZONE") (dict "API_URL" (printf "http://%s" (include "core-banking.name" (dict "root" .root "component" "gateway")))) }}
{{- else }}{{ $config = mergeOverwrite $config (deepCopy $values.config) }}
{{- end }}
{{- /* Gateways and ledgers have the same days. */ -}}
{{- if eq .component "ledger" }}{{ $config = mergeOverwrite $config (pick $values.gateway.config "BANK_TIME_ZONE") }}{{ end }}
{{- $config = mergeOverwrite $config ((index $values .component | default dict).config | default dict | deepCopy) }}
{{- if has .component (list "topics" "accounts" "webhooks") }}{{ $_ := set $config "EVENTS_RETENTION_DAYS" $values.topics.eventsRetentionDays }}{{ end }}
{{- range $name, $value := $config }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Secret variables of a component, each with the Secret and the key from which it is mounted as a file. */}}
{{- define "core-banking.secrets" -}}
{{- $values := .root.Values -}}
{{- $service := include "core-banking.service" . -}}
{{- $all := dict
  "gateway" (list "API_KEY_PEPPER" "API_KEY_PUBLIC_KEYS" "GATEWAY_MAC_KEYS" "WEBHOOK_SECRET_KEYS")
  "dashboard" (list "SESSION_SECRET")
  "ledger" (list "GATEWAY_MAC_KEYS" "ACCOUNTS_MAC_KEYS" "LEDGER_MAC_KEYS")
  "accounts" (list "API_KEY_SIGNING_KEY" "GATEWAY_MAC_KEYS" "ACCOUNTS_MAC_KEYS" "LEDGER_MAC_KEYS" "WEBHOOKS_MAC_KEYS")
  "webhooks" (list "GATEWAY_MAC_KEYS" "ACCOUNTS_MAC_KEYS" "WEBHOOKS_MAC_KEYS" "WEBHOOK_SECRET_KEYS") -}}
{{- $secrets := dict -}}
{{- $own := include "core-banking.secretName" . -}}
{{- range index $all .component | default list }}{{ $_ := set $secrets . (dict "name" $own "key" .) }}{{ end -}}
{{- if eq .component "dashboard" }}{{ $_ := set $secrets "DASHBOARD_CLIENT" (dict "name" ($values.dashboard.existingSecret | default $own) "key" "DASHBOARD_CLIENT") }}{{ end -}}
{{- if include "core-banking.usesPostgres" . }}
{{- $variable := ternary "DATABASE_PASSWORD" "DATABASE_URL" (ne $values.database.host "") -}}
{{- /* A shared Secret has one of each service. */ -}}
{{- $_ := set $secrets $variable (dict "name" $own "key" (ternary (printf "%s_%s" (upper $service) $variable) $variable (ne $values.existingSecret ""))) }}
{{- if hasPrefix "migrate-" .component }}
{{- if $values.database.host }}{{ $_ := set $secrets "MIGRATION_DATABASE_PASSWORD" (dict "name" $values.database.existingSecret "key" "password") }}
{{- else }}{{ $_ := set $secrets "MIGRATION_DATABASE_URL" (dict "name" $values.migrations.existingSecret "key" "MIGRATION_DATABASE_URL") }}{{ end }}
{{- end }}
{{- end }}
{{- if include "core-banking.usesKafka" . }}
{{- if (include "core-banking.config" . | fromYaml).KAFKA_SASL_MECHANISM }}
{{- if $values.kafka.existingSecret }}{{ $_ := set $secrets "KAFKA_SASL_PASSWORD" (dict "name" (replace "{service}" .component $values.kafka.existingSecret) "key" "password") }}
{{- else }}{{ range list "KAFKA_SASL_USERNAME" "KAFKA_SASL_PASSWORD" }}{{ $_ := set $secrets . (dict "name" $own "key" .) }}{{ end }}{{ end }}
{{- end }}
{{- if $values.kafkaClientCertificate }}{{ $_ := set $secrets "KAFKA_SSL_KEY" (dict "name" $own "key" "KAFKA_SSL_KEY") }}{{ end }}
{{- end }}
{{- toYaml $secrets }}
{{- end }}

{{/*
A checksum of a component's secrets as they are in the cluster, so that changed ones replace its pods. Those that the job
`secrets` makes change with the master key only, which counts unless it is the first one.
*/}}
{{- define "core-banking.secretsSum" -}}
{{- $root := .root -}}
{{- $made := not $root.Values.existingSecret -}}
{{- $own := include "core-banking.secretName" . -}}
{{- $found := list -}}
{{- range $variable, $from := include "core-banking.secrets" . | fromYaml }}
{{- if not (and $made (eq $from.name $own)) }}{{ $found = append $found (dig "data" $from.key "" (lookup "v1" "Secret" $root.Release.Namespace $from.name)) }}{{ end }}
{{- end }}
{{- $master := lookup "v1" "Secret" $root.Release.Namespace (include "core-banking.master" $root) }}
{{- $keys := dig "data" "MASTER_KEYS" "" $master | b64dec }}
{{- if and $made $keys (ne (sha256sum $keys) (dig "metadata" "annotations" "core-banking/first" "" $master)) }}{{ $found = append $found $keys }}{{ end }}
{{- toJson $found | sha256sum }}
{{- end }}

{{/* The Secret with the master key. */}}
{{- define "core-banking.master" -}}
{{ .Release.Name }}-master
{{- end }}

{{/* Settings common to all pods: no token, no privileges, and secrets and CAs in one read-only folder. */}}
{{- define "core-banking.pod" -}}
{{- $placing := include "core-banking.placing" . | fromJson -}}
automountServiceAccountToken: {{ eq .component "secrets" }}
# Otherwise a Service named PORT could set a variable.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placing.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placing.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placing.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placing.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  {{- with $placing.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  - name: files
    projected:
      defaultMode: 0440
      sources:
        {{- range $variable, $from := include "core-banking.secrets" . | fromYaml }}
        - secret: { name: {{ $from.name }}, items: [{ key: {{ $from.key }}, path: {{ $variable }} }] }
        {{- end }}
        {{- include "core-banking.ca" (dict "ca" .root.Values.trustedCa.kafka "path" "kafka-ca.crt" "if" (include "core-banking.usesKafka" .)) | nindent 8 }}
        {{- include "core-banking.ca" (dict "ca" .root.Values.trustedCa.postgres "path" "postgres-ca.crt" "if" (include "core-banking.usesPostgres" .)) | nindent 8 }}
{{- end }}

{{/* A CA certificate from a Secret or a ConfigMap, as a source of the projected volume. */}}
{{- define "core-banking.ca" -}}
{{- if and .if .ca.key -}}
- {{ ternary "secret" "configMap" (hasKey .ca "secretName") }}:
    name: {{ .ca.secretName | default .ca.configMapName }}
    items: [{ key: {{ .ca.key }}, path: {{ .path }} }]
{{- end }}
{{- end }}

{{/* Settings common to all containers. */}}
{{- define "core-banking.container" -}}
image: {{ include "core-banking.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  - { name: files, mountPath: /run/core-banking, readOnly: true }
  {{- with (include "core-banking.placing" . | fromJson).volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Paths of the secrets, and variables from the values. The URL of a database names the file of its password. */}}
{{- define "core-banking.env" -}}
{{- range $variable, $from := include "core-banking.secrets" . | fromYaml }}
{{- if not (hasSuffix "DATABASE_PASSWORD" $variable) }}
- { name: {{ $variable }}_FILE, value: /run/core-banking/{{ $variable }} }
{{- end }}
{{- end }}
{{- if and (include "core-banking.usesKafka" .) .root.Values.trustedCa.kafka.key }}
- { name: KAFKA_SSL_CA_FILE, value: /run/core-banking/kafka-ca.crt }
{{- end }}
{{- with (include "core-banking.placing" . | fromJson).env }}
{{ toYaml . }}
{{- end }}
{{- end }}
