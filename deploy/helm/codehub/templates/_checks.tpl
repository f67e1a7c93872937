{{/* Refuse values that cannot work, and say what to do. */}}
{{- define "codehub.checks" -}}
{{- $host := (urlParse .Values.publicUrl).hostname -}}
{{- if not .Values.publicUrl -}}
{{- fail "publicUrl is not set: set it to the URL for browsers, such as https://codehub.example.org" -}}
{{- end -}}
{{- if not (or .Values.workspacesDomain (has $host (list "localhost" "127.0.0.1"))) -}}
{{- fail "workspacesDomain is not set: set it to a domain only for workspaces, such as codehub-workspaces.example" -}}
{{- end -}}
{{- if not .Values.temporal.address -}}
{{- fail "temporal.address is not set: set it to host:port of Temporal, such as temporal-frontend.temporal:7233" -}}
{{- end -}}
{{- if not .Values.s3.endpointUrl -}}
{{- fail "s3.endpointUrl is not set: set it to the URL of your S3, such as https://s3.eu-central-1.amazonaws.com" -}}
{{- end -}}
{{- if not .Values.network.pods -}}
{{- fail "network.pods is not set: set it to the networks of your cluster's Pods, such as [10.244.0.0/16]" -}}
{{- end -}}
{{- if eq (include "codehub.workspacesNamespace" .) .Release.Namespace -}}
{{- fail "workspaces.namespace.name is the namespace of the release: workspaces need one of their own" -}}
{{- end -}}
{{- if eq .Values.images.tag "latest" -}}
{{- fail "images.tag is latest: set it to a version, or nodes run different ones" -}}
{{- end -}}
{{- if and .Values.egress.names (ne .Values.egress.mode "allow-list") -}}
{{- fail "egress.names needs egress.mode allow-list: set the mode, or remove the names" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- fail "gateway.parentRefs is not set: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if ne (empty .Values.oidc.issuer) (empty .Values.oidc.clientId) -}}
{{- fail "oidc.issuer and oidc.clientId belong together: set both, or neither" -}}
{{- end -}}
{{- range $name := include "codehub.secretNames" . | fromYamlArray -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s is a secret: put it into a Secret and refer to it; see values.yaml" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "codehub.secretNames" -}}
- CODEHUB_DATABASE_URL
- CODEHUB_REDIS_URL
- CODEHUB_S3_ACCESS_KEY
- CODEHUB_S3_SECRET_KEY
- CODEHUB_TEMPORAL_API_KEY
- CODEHUB_OIDC_CLIENT_SECRET
- CODEHUB_EGRESS_KEY
{{- end }}
