{{- define "portcullis.name" -}}
{{- if contains "portcullis" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-portcullis" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "portcullis.selector" -}}
app.kubernetes.io/name: portcullis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portcullis.labels" -}}
{{ include "portcullis.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "portcullis.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "portcullis.security" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end }}
