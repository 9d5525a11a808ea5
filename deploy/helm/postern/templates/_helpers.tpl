{{- define "postern.selector" -}}
app.kubernetes.io/component: gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postern.labels" -}}
app.kubernetes.io/name: postern
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "postern.databaseSecret" -}}
{{ .Values.database.secretName | default (printf "%s-db-app" .Release.Name) }}
{{- end }}

{{/* All variables of the gateway but its secrets; what the chart sets comes last, so that it holds. */}}
{{- define "postern.environment" -}}
{{- $own := dict
  "HOST" "0.0.0.0"
  "PORT" "8080"
  "ADMIN_PORT" "8081"
  "DATA_DIR" "/var/lib/postern/data"
  "SHUTDOWN_DELAY_MS" (.Values.shutdown.delayMs | int64 | toString)
  "SHUTDOWN_GRACE_MS" (.Values.shutdown.graceMs | int64 | toString)
  "ADMIN_TOKEN_FILE" "/run/secrets/postern/ADMIN_TOKEN"
  "MASTER_KEY_FILE" "/run/secrets/postern/MASTER_KEY"
  "PROVIDER_KEY_FILE" "/run/secrets/postern/PROVIDER_KEY"
  "DATABASE_URL_FILE" (printf "/run/secrets/postern-db/%s" .Values.database.secretKey) -}}
{{- range $name, $value := merge $own .Values.settings }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
