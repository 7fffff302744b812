/** The section `sandboxes` of the yaml (docs/guides/sandboxes.md). */
import type { Field } from './field.ts';
import { duration, integer, mapping, oneOf, textLike } from './readers.ts';

/** `auto`: the first of the others that works on this machine, otherwise none. */
const SANDBOX_DRIVERS = ['auto', 'bubblewrap', 'none'] as const;

export interface SandboxesSettings {
  driver: (typeof SANDBOX_DRIVERS)[number];
  /** Where the driver on this machine keeps workspaces, absolute; null: its usual place. */
  folder: string | null;
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

export function sandboxes(field: Field): SandboxesSettings | undefined {
  const read = mapping(field, {
    driver: oneOf(SANDBOX_DRIVERS),
    folder: textLike(/^\/[^\0]*[^/\0]$/, 'an absolute path without a slash at the end'),
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
  return (
    read && {
      driver: read.driver ?? DEFAULT_SANDBOXES.driver,
      folder: read.folder ?? DEFAULT_SANDBOXES.folder,
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
