/** Pod Security Admission at the level `restricted`, as a namespace with this label enforces it, as far as it concerns pods like ours. */

interface PodSpec {
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  securityContext?: { runAsNonRoot?: boolean; runAsUser?: number; seccompProfile?: { type?: string } };
  containers: {
    name: string;
    securityContext?: {
      allowPrivilegeEscalation?: boolean;
      privileged?: boolean;
      runAsNonRoot?: boolean;
      runAsUser?: number;
      capabilities?: { drop?: string[]; add?: string[] };
      seccompProfile?: { type?: string };
    };
    ports?: { hostPort?: number }[];
  }[];
  initContainers?: PodSpec['containers'];
  volumes?: Record<string, unknown>[];
}

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** @returns what violates the level */
export function violations(spec: PodSpec): string[] {
  const found: string[] = [];
  if (spec.hostNetwork || spec.hostPID || spec.hostIPC) found.push('host namespaces');
  for (const volume of spec.volumes ?? []) {
    const kind = Object.keys(volume).find((each) => each !== 'name');
    if (kind !== undefined && !VOLUMES.includes(kind)) found.push(`restricted volume types (${kind})`);
  }
  const pod = spec.securityContext ?? {};
  for (const { name, securityContext: own = {}, ports = [] } of [...spec.containers, ...(spec.initContainers ?? [])]) {
    const must = (holds: boolean, what: string) => {
      if (!holds) found.push(`${name}: ${what}`);
    };
    must(own.privileged !== true, 'privileged');
    must(own.allowPrivilegeEscalation === false, 'allowPrivilegeEscalation != false');
    must(own.capabilities?.drop?.includes('ALL') === true, 'unrestricted capabilities');
    must(
      (own.capabilities?.add ?? []).every((each) => each === 'NET_BIND_SERVICE'),
      'added capabilities',
    );
    must((own.runAsNonRoot ?? pod.runAsNonRoot) === true, 'runAsNonRoot != true');
    must((own.runAsUser ?? pod.runAsUser) !== 0, 'runAsUser=0');
    const profile = (own.seccompProfile ?? pod.seccompProfile)?.type;
    must(profile === 'RuntimeDefault' || profile === 'Localhost', 'seccompProfile');
    must(
      ports.every(({ hostPort }) => (hostPort ?? 0) === 0),
      'hostPort',
    );
  }
  return found;
}
