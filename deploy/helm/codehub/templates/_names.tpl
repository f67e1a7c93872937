{{/* The name of a part: {release}-{component}. */}}
{{- define "codehub.name" -}}
{{- printf "%s-%s" (.root.Release.Name | trunc 40 | trimSuffix "-") .component -}}
{{- end }}

{{- define "codehub.selector" -}}
app.kubernetes.io/name: codehub
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "codehub.labels" -}}
{{ include "codehub.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* An image of CodeHub: registry, name and tag. */}}
{{- define "codehub.image" -}}
{{- $tag := .root.Values.images.tag | default .root.Chart.AppVersion -}}
{{- with .root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end }}codehub-{{ .image }}:{{ $tag }}
{{- end }}

{{- define "codehub.workspaceImage" -}}
{{- .Values.workspaces.image | default (include "codehub.image" (dict "root" . "image" "workspace")) -}}
{{- end }}

{{/* Where the Service of a part is: its fixed address, or its name, which also resolves in other namespaces. */}}
{{- define "codehub.address" -}}
{{- $name := printf "%s.%s" (include "codehub.name" .) .root.Release.Namespace -}}
{{- (index .root.Values .component).clusterIP | default $name -}}
{{- end }}

{{- define "codehub.workspacesNamespace" -}}
{{- .Values.workspaces.namespace.name | default (printf "%s-workspaces" .Release.Namespace) -}}
{{- end }}
