/** The section `sandboxes` of the yaml (docs/guides/sandboxes.md). */
import type { Field } from './field.ts';
import { duration, integer, mapping, oneOf, text, textLike } from './readers.ts';

/** `auto`: the first of those for this machine that works, otherwise none. */
const SANDBOX_DRIVERS = ['auto', 'bubblewrap', 'kubernetes', 'none'] as const;

export interface KubernetesSandboxSettings {
  namespace: string;
  image: string;
  /** null: the default of the cluster. */
  storageClass: string | null;
  /** null: that of gVisor, if there is one. */
  runtimeClass: string | null;
  /** Address of the egress proxy for pods; null: the first of this machine. */
  egressHost: string | null;
  /** The first of `EGRESS_PORTS` ports. */
  egressPort: number;
  /** Path of a file; null: the account of the gateway's pod. */
  kubeconfig: string | null;
}

/** The processes of a gateway use one each. */
export const EGRESS_PORTS = 32;

export interface SandboxesSettings {
  driver: (typeof SANDBOX_DRIVERS)[number];
  /** Where the driver on this machine keeps workspaces, absolute; null: its usual place. */
  folder: string | null;
  /** null: not configured. */
  kubernetes: KubernetesSandboxSettings | null;
  /** Of one sandbox. */
  memoryBytes: number;
  processes: number;
  cpus: number;
  diskBytes: number;
  files: number;
  /** Of one command, unless it asks for less. */
  outputBytes: number;
  commandMs: number;
  /** Sandboxes that run at once in one process. */
  running: number;
  /** How long an unused container of a server tool is kept. */
  containerMs: number;
}

const MB = 1024 * 1024;

export const DEFAULT_SANDBOXES: SandboxesSettings = Object.freeze({
  driver: 'auto',
  folder: null,
  kubernetes: null,
  memoryBytes: 1024 * MB,
  processes: 256,
  cpus: 2,
  diskBytes: 2048 * MB,
  files: 200_000,
  outputBytes: 16 * MB,
  commandMs: 600_000,
  running: 32,
  containerMs: 7 * 24 * 3_600_000,
});

export const DEFAULT_KUBERNETES = Object.freeze({ namespace: 'gatehouse-sandboxes', egressPort: 3129 });

const objectName = textLike(/^[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?$/, 'the name of a Kubernetes object');
const absolutePath = textLike(/^\/[^\0]*[^/\0]$/, 'an absolute path without a slash at the end');
const address = textLike(/^[0-9a-fA-F:.]{2,45}$/, 'an IP address');

function kubernetes(field: Field): KubernetesSandboxSettings | undefined {
  const shape = {
    ...{ namespace: objectName, image: text, storage_class: objectName, runtime_class: objectName },
    ...{ egress_host: address, egress_port: integer(1024, 65_535 - EGRESS_PORTS), kubeconfig: absolutePath },
  };
  const read = mapping(field, shape, ['image']);
  if (read?.image === undefined) return undefined;
  return {
    namespace: read.namespace ?? DEFAULT_KUBERNETES.namespace,
    image: read.image,
    storageClass: read.storage_class ?? null,
    runtimeClass: read.runtime_class ?? null,
    egressHost: read.egress_host ?? null,
    egressPort: read.egress_port ?? DEFAULT_KUBERNETES.egressPort,
    kubeconfig: read.kubeconfig ?? null,
  };
}

export function sandboxes(field: Field): SandboxesSettings | undefined {
  const read = mapping(field, {
    driver: oneOf(SANDBOX_DRIVERS),
    folder: absolutePath,
    kubernetes,
    memory_bytes: integer(64 * MB),
    processes: integer(8, 100_000),
    cpus: integer(1, 1024),
    disk_bytes: integer(16 * MB),
    files: integer(100, 100_000_000),
    output_bytes: integer(1024),
    command_time: duration,
    running: integer(1, 10_000),
    container_time: duration,
  });
  if (read?.driver === 'kubernetes' && read.kubernetes === undefined) {
    return field.fail('must have kubernetes.image for the driver kubernetes');
  }
  return (
    read && {
      driver: read.driver ?? DEFAULT_SANDBOXES.driver,
      folder: read.folder ?? DEFAULT_SANDBOXES.folder,
      kubernetes: read.kubernetes ?? DEFAULT_SANDBOXES.kubernetes,
      memoryBytes: read.memory_bytes ?? DEFAULT_SANDBOXES.memoryBytes,
      processes: read.processes ?? DEFAULT_SANDBOXES.processes,
      cpus: read.cpus ?? DEFAULT_SANDBOXES.cpus,
      diskBytes: read.disk_bytes ?? DEFAULT_SANDBOXES.diskBytes,
      files: read.files ?? DEFAULT_SANDBOXES.files,
      outputBytes: read.output_bytes ?? DEFAULT_SANDBOXES.outputBytes,
      commandMs: read.command_time ?? DEFAULT_SANDBOXES.commandMs,
      running: read.running ?? DEFAULT_SANDBOXES.running,
      containerMs: read.container_time ?? DEFAULT_SANDBOXES.containerMs,
    }
  );
}
