{{- define "fabricmon.gate.fullname" -}}
{{- printf "%s-gate" (include "fabricmon.fullname" .) }}
{{- end }}

{{/* Not a label of the agents: their DaemonSet would count the gate's pod as one. */}}
{{- define "fabricmon.gate.selectorLabels" -}}
app.kubernetes.io/name: {{ printf "%s-gate" (include "fabricmon.name" . | trunc 58 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fabricmon.gate.labels" -}}
{{ include "fabricmon.commonLabels" . }}
{{ include "fabricmon.gate.selectorLabels" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "fabricmon.gate.image" -}}
{{- with .Values.gate.image }}
{{- if not .repository }}
{{- include "fabricmon.image" $ }}
{{- else if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fabricmon.gate.claim" -}}
{{- .Values.gate.journal.existingClaim | default (include "fabricmon.gate.fullname" .) }}
{{- end }}

{{/* The gate's configuration: that of the values, and what the chart decides. */}}
{{- define "fabricmon.gate.config" -}}
{{- $gate := .Values.gate }}
{{- $listen := dict "address" (printf "%s:%d" $gate.address (int $gate.port)) }}
{{- if $gate.token.secretName }}
{{- $_ := set $listen "token_file" "/etc/fabricmon-token/token" }}
{{- end }}
{{- if $gate.tls.secretName }}
{{- $_ := set $listen "tls_certificate" "/etc/fabricmon-tls/tls.crt" }}
{{- $_ := set $listen "tls_key" "/etc/fabricmon-tls/tls.key" }}
{{- end }}
{{- if $gate.tls.clientAuthority }}
{{- $_ := set $listen "client_authority" "/etc/fabricmon-tls/ca.crt" }}
{{- $_ := set $listen "health" (printf "%s:%d" $gate.address (int $gate.healthPort)) }}
{{- end }}
{{- $own := dict "listen" $listen "journal" (dict "folder" "/var/lib/fabricmon-gate") }}
{{- if $gate.script.configMap }}
{{- $_ := set $own "script" (dict "path" (printf "/etc/fabricmon-gate-script/%s" $gate.script.key)) }}
{{- end }}
{{- if $gate.maintenance.configMap }}
{{- $_ := set $own "maintenance_file" "/etc/fabricmon-maintenance/maintenance.json" }}
{{- end }}
{{- $config := mergeOverwrite (deepCopy $gate.config) $own }}
{{- if and .Values.config.cluster (not (hasKey $config "cluster")) }}
{{- $_ := set $config "cluster" .Values.config.cluster }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* What contradicts itself, and what would have nodes taken out by strangers. */}}
{{- define "fabricmon.gate.check" -}}
{{- $gate := .Values.gate }}
{{- $path := dig "script" "path" "" $gate.config }}
{{- if and (not $gate.token.secretName) (not $gate.tls.clientAuthority) }}
{{- fail "gate: whoever reaches its webhook could have nodes taken out: set gate.token.secretName, or gate.tls.clientAuthority" }}
{{- end }}
{{- if and $gate.tls.clientAuthority (not $gate.tls.secretName) }}
{{- fail "gate.tls.clientAuthority needs gate.tls.secretName" }}
{{- end }}
{{- if and $gate.tls.scraper (not $gate.tls.secretName) }}
{{- fail "gate.tls.scraper needs gate.tls.secretName" }}
{{- end }}
{{- if and $path $gate.script.configMap }}
{{- fail "gate.script.configMap and gate.config.script.path name two scripts: set one" }}
{{- end }}
{{- if $gate.config.act }}
{{- if not (or $path $gate.script.configMap) }}
{{- fail "gate.config.act needs a script: set gate.script.configMap, or gate.config.script.path for one in gate.image" }}
{{- end }}
{{- if eq $gate.journal.type "pod" }}
{{- fail "gate.config.act needs gate.journal.type=claim: with the pod the gate would forget which nodes are out" }}
{{- end }}
{{- end }}
{{- end }}
