{{/* The proxy finds the addresses of workspaces. */}}
{{- define "codehub.rules.proxy" -}}
- {apiGroups: [""], resources: [pods], verbs: [get]}
{{ include "codehub.rules.homeStore" . }}
{{- end }}

{{/* The API shows the log of a workspace, and the ports that are open in it. */}}
{{- define "codehub.rules.api" -}}
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get]}
{{ include "codehub.rules.homeStore" . }}
{{- end }}

{{- define "codehub.rules.worker" -}}
- {apiGroups: [""], resources: [pods, persistentvolumeclaims], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
# The request of a storage job, with the keys of S3. Nobody but the job reads it.
- {apiGroups: [""], resources: [secrets], verbs: [create, delete]}
- {apiGroups: [""], resources: [events], verbs: [list]}
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
{{ include "codehub.rules.homeStore" . }}
{{- end }}

{{/* Every part makes sure that these are the homes of its database. */}}
{{- define "codehub.rules.homeStore" -}}
- {apiGroups: [""], resources: [configmaps], resourceNames: [codehub-store-{{ .Release.Name }}], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [{{ include "codehub.workspacesNamespace" . }}], verbs: [get]}
{{- end }}
