{{- define "fabricmon.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "fabricmon.fullname" -}}
{{- $name := include "fabricmon.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "fabricmon.selectorLabels" -}}
app.kubernetes.io/name: {{ include "fabricmon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fabricmon.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: fabricmon
{{- end }}

{{- define "fabricmon.labels" -}}
{{ include "fabricmon.commonLabels" . }}
{{ include "fabricmon.selectorLabels" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "fabricmon.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "fabricmon.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "fabricmon.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{/* User of the agent: root only where the kernel asks for root. */}}
{{- define "fabricmon.user" -}}
{{- if or .Values.processes.enabled .Values.kernelLog.enabled .Values.podResources.enabled -}}
0
{{- else -}}
65534
{{- end }}
{{- end }}

{{/* Folders that the agent writes to and that lie on the host. */}}
{{- define "fabricmon.hostFolders" -}}
{{- if eq .Values.state.type "host" }}
- name: state
  path: {{ .Values.state.path }}
{{- end }}
{{- if eq .Values.run.type "host" }}
- name: run
  path: {{ .Values.run.path }}
{{- end }}
{{- end }}

{{/* Files that the agent reads below /host: what, where, and of which type it is. */}}
{{- define "fabricmon.hostMounts" -}}
- {name: sys, path: /sys, type: Directory}
{{- if .Values.logs.nccl }}
- {name: nccl-logs, path: /var/log/nccl, type: DirectoryOrCreate}
{{- end }}
{{- if .Values.logs.pods }}
- {name: pod-logs, path: /var/log/pods, type: Directory}
{{- end }}
{{- if .Values.logs.ncclConf }}
- {name: nccl-conf, path: /etc/nccl.conf, type: File}
{{- end }}
{{- range $number, $folder := .Values.logs.folders }}
- {name: logs-{{ $number }}, path: {{ $folder | quote }}, type: Directory}
{{- end }}
{{- if .Values.podResources.enabled }}
- {name: pod-resources, path: {{ .Values.podResources.path | quote }}, type: Directory}
{{- end }}
{{- if .Values.processes.enabled }}
- {name: proc, path: /proc, type: Directory}
{{- end }}
{{- if .Values.kernelLog.enabled }}
- {name: kmsg, path: /dev/kmsg, type: CharDevice}
{{- end }}
{{- end }}

{{/* The configuration: that of the values, and what the chart decides. */}}
{{- define "fabricmon.config" -}}
{{- $own := dict
  "root" "/host"
  "state_folder" "/var/lib/fabricmon"
  "run_folder" "/run/fabricmon" }}
{{- $listen := dict }}
{{- if .Values.page.enabled }}
{{- $_ := set $listen "page" (printf "127.0.0.1:%d" (int .Values.page.port)) }}
{{- end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $listen "tls_certificate" "/etc/fabricmon-tls/tls.crt" }}
{{- $_ := set $listen "tls_key" "/etc/fabricmon-tls/tls.key" }}
{{- if .Values.tls.clientAuthority }}
{{- $_ := set $listen "client_authority" "/etc/fabricmon-tls/ca.crt" }}
{{- end }}
{{- end }}
{{- $_ := set $own "listen" $listen }}
{{- if eq .Values.maintenance.source "configMap" }}
{{- $_ := set $own "maintenance_file" "/etc/fabricmon-maintenance/maintenance.json" }}
{{- end }}
{{- $jobs := dict }}
{{- if .Values.processes.enabled }}
{{- $_ := set $jobs "processes" true }}
{{- end }}
{{- if .Values.podResources.enabled }}
{{- $_ := set $jobs "kubelet_socket" (printf "%s/kubelet.sock" .Values.podResources.path) }}
{{- end }}
{{- $_ := set $own "jobs" $jobs }}
{{- if .Values.kubernetes.enabled }}
{{- $_ := set $own "kubernetes" (dict "enabled" true) }}
{{- end }}
{{- $config := mergeOverwrite (deepCopy .Values.config) $own }}
{{- if not .Values.page.enabled }}
{{- $_ := set $config.listen "page" nil }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* What contradicts itself, and what would serve metrics to strangers unasked. */}}
{{- define "fabricmon.check" -}}
{{- if and .Values.network.host (not .Values.tls.secretName) (not .Values.network.allowPlain) }}
{{- fail "network.host: on the node's network metrics are open to whoever reaches the node: set tls.secretName, or network.allowPlain=true" }}
{{- end }}
{{- if and .Values.tls.clientAuthority (not .Values.tls.secretName) }}
{{- fail "tls.clientAuthority needs tls.secretName" }}
{{- end }}
{{- if and (eq .Values.maintenance.source "configMap") (not .Values.maintenance.configMap) }}
{{- fail "maintenance.source=configMap needs maintenance.configMap, the name of the ConfigMap" }}
{{- end }}
{{- if and (eq .Values.maintenance.source "host") (ne .Values.run.type "host") }}
{{- fail "maintenance.source=host needs run.type=host" }}
{{- end }}
{{- if and .Values.podMonitor.enabled .Values.podMonitor.tlsConfig (not .Values.tls.secretName) }}
{{- fail "podMonitor.tlsConfig needs tls.secretName" }}
{{- end }}
{{- end }}
