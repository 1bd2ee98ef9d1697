{{/*
Every helper takes a dict: root (the chart's context) and component (gateway, dashboard, ledger, accounts, webhooks,
migrate-ledger, migrate-accounts, migrate-webhooks, topics, test).
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

{{/* Labels of a pod: its selector labels, then the labels from the values, which the schema prevents from overriding them. */}}
{{- define "core-banking.podLabels" -}}
{{- $own := index .root.Values .component | default dict -}}
{{ include "core-banking.selector" . }}
{{- with merge dict ($own.podLabels | default dict) .root.Values.podLabels .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "core-banking.serviceAccount" -}}
{{- $own := (index .root.Values .component).serviceAccount | default dict -}}
{{ $own.name | default (ternary (include "core-banking.name" .) "default" $own.create) }}
{{- end }}

{{/* Topology spread constraints. They count only pods of this version, because a rollout is about to remove the others. */}}
{{- define "core-banking.spread" -}}
{{- $own := index .root.Values .component | default dict -}}
{{- $counted := dict "labelSelector" (dict "matchLabels" (include "core-banking.selector" . | fromYaml)) "matchLabelKeys" (list "pod-template-hash") -}}
{{- range $own.topologySpreadConstraints | default .root.Values.topologySpreadConstraints }}
- {{ merge dict . $counted | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{- define "core-banking.image" -}}
{{- with .root.Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The Secret of a component: its own, or the shared one. */}}
{{- define "core-banking.secretName" -}}
{{- $own := index .root.Values .component | default dict -}}
{{- if hasPrefix "migrate-" .component -}}{{ .root.Values.migrations.existingSecret }}
{{- else -}}{{ $own.existingSecret | default .root.Values.existingSecret }}
{{- end }}
{{- end }}

{{/* The services. There is a dashboard if it is configured. */}}
{{- define "core-banking.hasDashboard" -}}
{{- if and .Values.dashboard.enabled .Values.dashboard.config.DASHBOARD_CLIENT_ID -}}true{{- end -}}
{{- end }}

{{- define "core-banking.services" -}}
{{ concat (list "gateway") (ternary (list "dashboard") list (eq (include "core-banking.hasDashboard" .) "true")) (list "ledger" "accounts" "webhooks") | toJson }}
{{- end }}

{{- define "core-banking.usesKafka" -}}
{{ if has .component (list "gateway" "ledger" "accounts" "webhooks" "topics") }}true{{ end }}
{{- end }}

{{- define "core-banking.usesPostgres" -}}
{{ if has .component (list "ledger" "accounts" "webhooks" "migrate-ledger" "migrate-accounts" "migrate-webhooks") }}true{{ end }}
{{- end }}

{{/* Variables that are not secret: the shared ones, overridden by those of this process. */}}
{{- define "core-banking.config" -}}
{{- $own := index .root.Values .component | default dict -}}
{{- $shared := deepCopy .root.Values.config -}}
{{- /* The dashboard has no brokers. It shares with the gateway what it says about the bank, and the issuer. */ -}}
{{- if eq .component "dashboard" }}
{{- $gateway := dict "root" .root "component" "gateway" }}
{{- $same := pick (deepCopy .root.Values.gateway.config) "JWT_ISSUER" "SHUTDOWN_DELAY_MS" "BANK_NAME" "BANK_ADDRESS" "BANK_LOCALE" "BANK_TIME_ZONE" }}
{{- $shared = mergeOverwrite (pick $shared "NODE_ENV" "LOG_LEVEL") $same (dict "API_URL" (printf "http://%s" (include "core-banking.name" $gateway))) }}
{{- end -}}
{{- /* Gateways and ledgers have the same days. */ -}}
{{- if eq .component "ledger" }}{{ $shared = mergeOverwrite $shared (pick (deepCopy .root.Values.gateway.config) "BANK_TIME_ZONE") }}{{ end -}}
{{- $config := mergeOverwrite $shared ($own.config | default dict | deepCopy) -}}
{{- /* Nothing of this chart is in front of the gateways then. The schema requires their proxies otherwise. */ -}}
{{- if and (eq .component "gateway") (not .root.Values.ingress.enabled) (not .root.Values.gatewayApi.enabled) (not (hasKey $config "TRUST_PROXY")) }}{{ $_ := set $config "TRUST_PROXY" "none" }}{{ end -}}
{{- if eq .component "topics" }}{{ $_ := set $config "REPLICATION_FACTOR" .root.Values.topics.replicationFactor }}{{ $_ := set $config "EVENTS_COMPRESSION" .root.Values.topics.eventsCompression }}{{ end -}}
{{- if has .component (list "topics" "accounts" "webhooks") }}{{ $_ := set $config "EVENTS_RETENTION_DAYS" .root.Values.topics.eventsRetentionDays }}{{ end -}}
{{- range $name, $value := $config }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Secret variables of a component, with the key of its Secret. Each is read from a file. */}}
{{- define "core-banking.secrets" -}}
{{- $config := include "core-banking.config" . | fromYaml -}}
{{- if eq .component "dashboard" }}
DASHBOARD_CLIENT_SECRET: DASHBOARD_CLIENT_SECRET
SESSION_SECRET: SESSION_SECRET
{{- else if eq .component "gateway" }}
API_KEY_PEPPER: API_KEY_PEPPER
{{- if .root.Values.previousApiKeyPepper }}
API_KEY_PEPPER_PREVIOUS: API_KEY_PEPPER_PREVIOUS
{{- end }}
GATEWAY_MAC_KEYS: GATEWAY_MAC_KEYS
API_KEY_PUBLIC_KEYS: API_KEY_PUBLIC_KEYS
WEBHOOK_SECRET_KEYS: WEBHOOK_SECRET_KEYS
{{- else if eq .component "ledger" }}
DATABASE_URL: LEDGER_DATABASE_URL
GATEWAY_MAC_KEYS: GATEWAY_MAC_KEYS
ACCOUNTS_MAC_KEYS: ACCOUNTS_MAC_KEYS
LEDGER_MAC_KEYS: LEDGER_MAC_KEYS
{{- else if eq .component "accounts" }}
DATABASE_URL: ACCOUNTS_DATABASE_URL
API_KEY_SIGNING_KEY: API_KEY_SIGNING_KEY
GATEWAY_MAC_KEYS: GATEWAY_MAC_KEYS
ACCOUNTS_MAC_KEYS: ACCOUNTS_MAC_KEYS
LEDGER_MAC_KEYS: LEDGER_MAC_KEYS
WEBHOOKS_MAC_KEYS: WEBHOOKS_MAC_KEYS
{{- else if eq .component "webhooks" }}
DATABASE_URL: WEBHOOKS_DATABASE_URL
GATEWAY_MAC_KEYS: GATEWAY_MAC_KEYS
ACCOUNTS_MAC_KEYS: ACCOUNTS_MAC_KEYS
WEBHOOKS_MAC_KEYS: WEBHOOKS_MAC_KEYS
WEBHOOK_SECRET_KEYS: WEBHOOK_SECRET_KEYS
{{- else if eq .component "migrate-ledger" }}
MIGRATION_DATABASE_URL: MIGRATION_DATABASE_URL
SERVICE_ROLE_PASSWORD: LEDGER_ROLE_PASSWORD
{{- else if eq .component "migrate-accounts" }}
MIGRATION_DATABASE_URL: MIGRATION_DATABASE_URL
SERVICE_ROLE_PASSWORD: ACCOUNTS_ROLE_PASSWORD
{{- else if eq .component "migrate-webhooks" }}
MIGRATION_DATABASE_URL: MIGRATION_DATABASE_URL
SERVICE_ROLE_PASSWORD: WEBHOOKS_ROLE_PASSWORD
{{- end }}
{{- if include "core-banking.usesKafka" . }}
{{- if $config.KAFKA_SASL_MECHANISM }}
KAFKA_SASL_USERNAME: KAFKA_SASL_USERNAME
KAFKA_SASL_PASSWORD: KAFKA_SASL_PASSWORD
{{- end }}
{{- if .root.Values.kafkaClientCertificate }}
KAFKA_SSL_CERT: KAFKA_SSL_CERT
KAFKA_SSL_KEY: KAFKA_SSL_KEY
{{- end }}
{{- end }}
{{- if and .root.Values.collectorHeaders (has .component (without (include "core-banking.services" .root | fromJsonArray) "dashboard")) }}
OTEL_EXPORTER_OTLP_HEADERS: OTEL_EXPORTER_OTLP_HEADERS
{{- end }}
{{- end }}

{{/* Settings common to all pods: no token, no privileges, and secrets and CAs in one read-only folder. */}}
{{- define "core-banking.pod" -}}
{{- $own := index .root.Values .component | default dict -}}
automountServiceAccountToken: false
# Otherwise a Service named PORT or KAFKA_SSL could set a variable.
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
{{- with merge dict ($own.nodeSelector | default dict) .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat .root.Values.tolerations ($own.tolerations | default list) }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.affinity | default .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.priorityClassName | default .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  {{- with concat .root.Values.extraVolumes ($own.extraVolumes | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  - name: files
    projected:
      defaultMode: 0440
      sources:
        {{- with include "core-banking.secrets" . | fromYaml }}
        - secret:
            name: {{ include "core-banking.secretName" $ }}
            items:
              {{- range $variable, $key := . }}
              - { key: {{ $key }}, path: {{ $variable }} }
              {{- end }}
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
{{- $own := index .root.Values .component | default dict -}}
image: {{ include "core-banking.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  - { name: files, mountPath: /run/core-banking, readOnly: true }
  {{- with concat .root.Values.extraVolumeMounts ($own.extraVolumeMounts | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Paths of the secrets, the instance name, and extraEnv. */}}
{{- define "core-banking.env" -}}
{{- $own := index .root.Values .component | default dict -}}
- name: INSTANCE
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- range $variable, $key := include "core-banking.secrets" . | fromYaml }}
- { name: {{ $variable }}_FILE, value: /run/core-banking/{{ $variable }} }
{{- end }}
{{- if and (include "core-banking.usesKafka" .) .root.Values.trustedCa.kafka.key }}
- { name: KAFKA_SSL_CA_FILE, value: /run/core-banking/kafka-ca.crt }
{{- end }}
{{- with concat .root.Values.extraEnv ($own.extraEnv | default list) }}
{{ toYaml . }}
{{- end }}
{{- end }}
