/** Interns without I/O. */
import { createHash } from 'node:crypto';
import { internError } from './errors.ts';
import type { LiveStatus } from './lifecycle.ts';
import type { CreateIntern, InternReply } from './schema.ts';

interface Progress {
  readonly step_label: string;
  /** From 1. */
  readonly step_number: number;
  readonly total_steps: number;
}

export interface Intern {
  readonly id: string;
  readonly organizationId: string;
  readonly workspaceId: string;
  /** The member whose key created it; null for a key of the organization. */
  readonly creatorUserId: string | null;
  readonly name: string;
  readonly description: string | null;
  readonly instructions: string | null;
  readonly model: string | null;
  readonly status: LiveStatus;
  /** Counts provisioning, suspension and deletion: work that began under another number is out of date. */
  readonly epoch: number;
  readonly hostname: string | null;
  readonly progress: Progress | null;
  readonly lastFailureMessage: string | null;
  readonly vaultId: string | null;
  readonly attachedVaultId: string | null;
  /** Null: derived from the body. */
  readonly idempotencyKey: string | null;
  readonly bodySha256: Buffer;
  readonly provisionOnCreate: boolean;
  /** When it first ran. */
  readonly provisionedAt: Date | null;
  readonly lossAcknowledged: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** `Intern` in `openapi.json`. */
export function internReply(intern: Intern): InternReply {
  return {
    id: intern.id,
    name: intern.name,
    description: intern.description,
    instructions: intern.instructions,
    model: intern.model,
    status: intern.status,
    hostname: intern.hostname,
    progress: intern.progress,
    last_failure_message: intern.lastFailureMessage,
    vault_id: intern.vaultId,
    attached_vault_id: intern.attachedVaultId,
    workspace_id: intern.workspaceId,
    created_at: intern.createdAt.toISOString(),
    updated_at: intern.updatedAt.toISOString(),
  };
}

/** Equal for bodies that ask for the same intern, in whatever order they have their members. */
export function bodyHash({ name, description, instructions, provision, vault_id }: CreateIntern): Buffer {
  const members = [name, description ?? null, instructions ?? null, provision ?? false, vault_id ?? null];
  return createHash('sha256').update(JSON.stringify(members)).digest();
}

/** A creation with `provision_on_create` that failed before the intern ever ran. */
export function isUnfinished({ provisionOnCreate, provisionedAt, status }: Intern): boolean {
  return provisionOnCreate && provisionedAt === null && status === 'failed';
}

/** The name of its sandbox. */
export function sandboxIdOf(internId: string): string {
  return `i${internId.replaceAll('-', '')}`;
}

/** @throws GatewayError 404, 409 */
export function runningIntern(intern: Intern | undefined): Intern {
  if (intern === undefined) throw internError('not_found', 'There is no intern with this id.');
  if (intern.status === 'running') return intern;
  throw internError('intern_not_ready', `The intern is ${intern.status}; it must be running.`);
}
