{{/* What all Pods of the control plane have in common; `token` says whether the part calls Kubernetes. */}}
{{- define "codehub.podCommon" -}}
{{- if .token }}
serviceAccountName: {{ include "codehub.name" . }}
{{- end }}
automountServiceAccountToken: {{ .token }}
# Otherwise a Service of this release sets CODEHUB_API_PORT, which is a setting.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.scheduling.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.scheduling.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Replicas on different nodes and in different zones, as far as there are any. */}}
{{- define "codehub.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "codehub.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "codehub.containerCommon" -}}
image: {{ include "codehub.image" (dict "root" .root "image" "control-plane") }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
env: {{- include "codehub.environment" . | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if .root.Values.temporal.tls.secretName }}
  - {name: temporal-tls, mountPath: /etc/codehub/temporal, readOnly: true}
  {{- end }}
{{- end }}

{{- define "codehub.volumes" -}}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 256Mi}
  {{- with .root.Values.temporal.tls.secretName }}
  - name: temporal-tls
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
{{- end }}

{{/* Replicas, unless an autoscaler decides; a new Pod is ready before an old one is told to stop. */}}
{{- define "codehub.rollout" -}}
{{- if not .autoscaled }}
replicas: {{ .replicas }}
{{- end }}
revisionHistoryLimit: 3
strategy:
  type: RollingUpdate
  rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
selector:
  matchLabels: {{- include "codehub.selector" . | nindent 4 }}
{{- end }}

{{/* Keep serving until every node knows that this Pod has stopped; the process drains after that. */}}
{{- define "codehub.preStop" -}}
preStop:
  exec:
    command: [sleep, {{ . | quote }}]
{{- end }}

{{- define "codehub.startupProbe" -}}
{{ toYaml . }}
periodSeconds: 2
timeoutSeconds: 5
failureThreshold: 60
{{- end }}
