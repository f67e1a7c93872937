{{/* The Pods of a part of this release, seen from any namespace. */}}
{{- define "codehub.peer" -}}
namespaceSelector:
  matchLabels: {kubernetes.io/metadata.name: {{ .root.Release.Namespace }}}
podSelector:
  matchLabels: {{- include "codehub.selector" . | nindent 4 }}
{{- end }}

{{- define "codehub.dnsRule" -}}
- to: {{- toYaml .Values.network.dns | nindent 4 }}
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end }}

{{/* Who may connect to a part: a list of peers; an empty one means everybody. */}}
{{- define "codehub.from" -}}
{{- if eq .from "monitoring" -}}
{{ toYaml .root.Values.network.monitoring }}
{{- else if eq .from "clients" -}}
{{ toYaml .root.Values.network.clients }}
{{- else if eq .from "workspaces" -}}
- namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: {{ include "codehub.workspacesNamespace" .root }}}
  podSelector:
    matchLabels: {codehub.io/component: workspace}
{{- else -}}
- {{- include "codehub.peer" (dict "root" .root "component" .from) | nindent 2 }}
{{- end -}}
{{- end }}

{{- define "codehub.s3Port" -}}
{{- $url := urlParse .Values.s3.endpointUrl -}}
{{- $default := ternary "443" "80" (eq $url.scheme "https") -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default $default -}}
{{- end }}
