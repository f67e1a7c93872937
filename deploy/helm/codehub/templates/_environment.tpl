{{/* The settings of a part: plain ones, those of `settings`, and secrets by reference. */}}
{{- define "codehub.environment" -}}
{{- include "codehub.checks" .root -}}
{{- $own := include "codehub.ownSettings" . | fromYaml -}}
{{- $settings := ternary dict .root.Values.settings (eq .component "migrate") -}}
{{- range $name := keys $settings | sortAlpha -}}
{{- if hasKey $own $name -}}
{{- fail (printf "settings.%s: the chart sets it from another value; see values.yaml" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := merge $own $settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $secret := include "codehub.secrets" . | fromYaml }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key }}}
{{- end }}
{{- end }}

{{- define "codehub.ownSettings" -}}
{{- $values := .root.Values -}}
# The image's user has no home.
HOME: /tmp
CODEHUB_DATA_DIR: /tmp/codehub
CODEHUB_LOG_FORMAT: json
{{- if ne .component "migrate" }}
CODEHUB_PUBLIC_BASE_URL: {{ $values.publicUrl | quote }}
CODEHUB_WORKSPACES_ORIGINS: subdomain
{{- with $values.workspacesDomain }}
CODEHUB_WORKSPACES_DOMAIN: {{ . | quote }}
{{- end }}
CODEHUB_TEMPORAL_ADDRESS: {{ $values.temporal.address | quote }}
CODEHUB_TEMPORAL_NAMESPACE: {{ $values.temporal.namespace | quote }}
CODEHUB_TEMPORAL_TASK_QUEUE: {{ $values.temporal.taskQueue | quote }}
{{- with $values.temporal.uiUrl }}
CODEHUB_TEMPORAL_UI_URL: {{ . | quote }}
{{- end }}
{{- if $values.temporal.tls.enabled }}
CODEHUB_TEMPORAL_TLS: "true"
{{- end }}
{{- if $values.temporal.tls.secretName }}
CODEHUB_TEMPORAL_TLS_CA_FILE: /etc/codehub/temporal/ca.crt
{{- if $values.temporal.tls.clientCertificate }}
CODEHUB_TEMPORAL_TLS_CERT_FILE: /etc/codehub/temporal/tls.crt
CODEHUB_TEMPORAL_TLS_KEY_FILE: /etc/codehub/temporal/tls.key
{{- end }}
{{- end }}
{{- with $values.temporal.tls.serverName }}
CODEHUB_TEMPORAL_TLS_SERVER_NAME: {{ . | quote }}
{{- end }}
{{- with $values.oidc.issuer }}
CODEHUB_OIDC_ISSUER: {{ . | quote }}
CODEHUB_OIDC_CLIENT_ID: {{ $values.oidc.clientId | quote }}
{{- end }}
CODEHUB_EGRESS_MODE: {{ $values.egress.mode | quote }}
{{- with $values.egress.names }}
CODEHUB_EGRESS_NAMES: {{ join "," . | quote }}
{{- end }}
CODEHUB_WORKSPACES_INSTANCE_BACKEND: k8s
CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF: {{ include "codehub.workspaceImage" .root | quote }}
{{- with $values.workspaces.allowedImages }}
CODEHUB_WORKSPACES_ALLOWED_IMAGES: {{ join "," . | quote }}
{{- end }}
CODEHUB_PROXY_API_URL: http://{{ include "codehub.address" (dict "root" .root "component" "api") }}:8081
{{- end }}
{{- if has .component (list "api" "worker" "egress") }}
CODEHUB_S3_ENDPOINT_URL: {{ $values.s3.endpointUrl | quote }}
CODEHUB_S3_REGION: {{ $values.s3.region | quote }}
CODEHUB_S3_BUCKET: {{ $values.s3.bucket | quote }}
{{- end }}
{{- if has .component (list "api" "proxy" "worker") }}
{{- include "codehub.settings.kubernetes" . }}
{{- end }}
{{- if has .component (list "api" "worker") }}
CODEHUB_KUBERNETES_EGRESS_ADDRESS: {{ include "codehub.address" (dict "root" .root "component" "egress") }}:3128
{{- end }}
{{- include (printf "codehub.settings.%s" .component) . }}
{{- end }}

{{- define "codehub.settings.kubernetes" }}
{{- $values := .root.Values }}
CODEHUB_KUBERNETES_NAMESPACE: {{ include "codehub.workspacesNamespace" .root }}
CODEHUB_KUBERNETES_PROJECT: {{ .root.Release.Name }}
CODEHUB_KUBERNETES_JOB_IMAGE: {{ include "codehub.image" (dict "root" .root "image" "storage-job") | quote }}
CODEHUB_KUBERNETES_IMAGE_PULL_POLICY: {{ $values.images.pullPolicy }}
CODEHUB_KUBERNETES_ACCESS_MODE: {{ $values.workspaces.storage.accessMode }}
{{- with $values.workspaces.storage.className }}
CODEHUB_KUBERNETES_STORAGE_CLASS: {{ . }}
{{- end }}
{{- with $values.workspaces.nodeSelector }}
CODEHUB_KUBERNETES_NODE_SELECTOR: {{ toJson . | quote }}
{{- end }}
{{- with $values.workspaces.tolerations }}
CODEHUB_KUBERNETES_TOLERATIONS: {{ toJson . | quote }}
{{- end }}
{{- with $values.workspaces.runtimeClassName }}
CODEHUB_KUBERNETES_RUNTIME_CLASS: {{ . }}
{{- end }}
{{- with $values.workspaces.priorityClassName }}
CODEHUB_KUBERNETES_PRIORITY_CLASS: {{ . }}
{{- end }}
{{- with $values.workspaces.pullSecrets }}
CODEHUB_KUBERNETES_IMAGE_PULL_SECRETS: {{ join "," . | quote }}
{{- end }}
{{- with $values.workspaces.imageLabels }}
CODEHUB_KUBERNETES_IMAGE_LABELS: {{ toJson . | quote }}
{{- end }}
{{- end }}

{{- define "codehub.settings.migrate" }}{{ end }}

{{- define "codehub.settings.api" }}
{{- $values := .root.Values }}
CODEHUB_API_HOST: 0.0.0.0
CODEHUB_API_PORT: "8081"
# The proxies are Pods. Nothing else reaches the API, by its NetworkPolicy.
CODEHUB_API_TRUSTED_PROXIES: {{ join "," $values.network.pods | quote }}
CODEHUB_API_SHUTDOWN_GRACE_SECONDS: {{ $values.api.shutdownSeconds | quote }}
{{- end }}

{{- define "codehub.settings.proxy" }}
{{- $values := .root.Values }}
CODEHUB_PROXY_HOST: 0.0.0.0
CODEHUB_PROXY_PORT: "8080"
CODEHUB_PROXY_METRICS_HOST: 0.0.0.0
CODEHUB_PROXY_METRICS_PORT: "9101"
CODEHUB_PROXY_DRAIN_SECONDS: {{ $values.proxy.drainSeconds | quote }}
{{- with $values.proxy.trustedProxies }}
CODEHUB_PROXY_TRUSTED_PROXIES: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{- define "codehub.settings.worker" }}
CODEHUB_WORKER_METRICS_HOST: 0.0.0.0
CODEHUB_WORKER_METRICS_PORT: "9111"
CODEHUB_WORKER_READY_FILE: /tmp/ready
CODEHUB_WORKER_SHUTDOWN_GRACE_SECONDS: {{ .root.Values.worker.shutdownSeconds | quote }}
{{- end }}

{{- define "codehub.settings.egress" }}
{{- $values := .root.Values }}
CODEHUB_EGRESS_ADDRESS: 0.0.0.0:3128
# The gateway refuses connections to S3, so it must know where it is; it has no keys to it.
CODEHUB_S3_ACCESS_KEY: none
CODEHUB_S3_SECRET_KEY: none
{{- with concat $values.network.pods $values.network.services $values.egress.refusedNetworks }}
CODEHUB_EGRESS_REFUSED_NETWORKS: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{/* The secrets of a part: only those that it uses. */}}
{{- define "codehub.secrets" -}}
{{- $values := .root.Values -}}
{{- $secrets := dict "CODEHUB_DATABASE_URL" $values.database.urlSecret -}}
{{- if ne .component "migrate" -}}
{{- $_ := set $secrets "CODEHUB_REDIS_URL" $values.redis.urlSecret -}}
{{- end -}}
{{- if has .component (list "api" "worker") -}}
{{- $_ := set $secrets "CODEHUB_S3_ACCESS_KEY" $values.s3.accessKeySecret -}}
{{- $_ := set $secrets "CODEHUB_S3_SECRET_KEY" $values.s3.secretKeySecret -}}
{{- end -}}
{{- if and (has .component (list "api" "proxy" "worker")) $values.temporal.apiKeySecret.name -}}
{{- $_ := set $secrets "CODEHUB_TEMPORAL_API_KEY" $values.temporal.apiKeySecret -}}
{{- end -}}
{{- if and (eq .component "api") $values.oidc.issuer $values.oidc.clientSecret.name -}}
{{- $_ := set $secrets "CODEHUB_OIDC_CLIENT_SECRET" $values.oidc.clientSecret -}}
{{- end -}}
{{- if has .component (list "api" "worker" "egress") -}}
{{- $_ := set $secrets "CODEHUB_EGRESS_KEY" $values.egress.keySecret -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end }}
