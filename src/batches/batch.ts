/** What a batch is: its states, the transitions between them, and its reply. */
import { prefixedId, uuidOf } from '../base/ids.ts';
import { unixSeconds } from '../base/timestamp.ts';
import { type UsageCounts, usageReply } from './results/usage.ts';

export const BATCH_STATES = [
  'validating',
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchState = (typeof BATCH_STATES)[number];

/**
 * `start`: a process begins with the items. `unrunnable`: the items can never run. `ran`: every item has a result.
 * `closed`: the results are summed. `overdue`: the window is over. `cancel`: the client cancels. `stopped`: no item of
 * a cancelled batch is running any more.
 */
export type BatchEvent = 'start' | 'unrunnable' | 'ran' | 'closed' | 'overdue' | 'cancel' | 'stopped';

const TRANSITIONS: Readonly<Record<BatchState, Partial<Readonly<Record<BatchEvent, BatchState>>>>> = {
  validating: { start: 'in_progress', unrunnable: 'failed', overdue: 'expired', cancel: 'cancelling' },
  in_progress: { ran: 'finalizing', overdue: 'expired', cancel: 'cancelling' },
  finalizing: { closed: 'completed', cancel: 'cancelling' },
  cancelling: { stopped: 'cancelled', cancel: 'cancelling' },
  completed: {},
  failed: {},
  expired: {},
  cancelled: {},
};

/** The state after the event; undefined if the event cannot happen in this state. */
export function nextState(state: BatchState, event: BatchEvent): BatchState | undefined {
  return TRANSITIONS[state][event];
}

export function isTerminal(state: BatchState): boolean {
  return Object.keys(TRANSITIONS[state]).length === 0;
}

export const TERMINAL_STATES = BATCH_STATES.filter(isTerminal);

export const BATCH_ENDPOINTS = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/embeddings'] as const;
export type BatchEndpoint = (typeof BATCH_ENDPOINTS)[number];

/** The preferences that a batch accepts. */
export interface BatchPreferences {
  only?: readonly string[] | null;
  allow_fallbacks?: boolean | null;
}

/** How long a batch may take. */
export const WINDOW_MS = 24 * 3_600_000;

/** The API that a batch was submitted with: this gateway's own, or that of a vendor's SDK. */
export type BatchShape = 'svc' | 'openai' | 'anthropic';

export interface Batch {
  /** UUID. */
  id: string;
  organizationId: string;
  workspaceId: string;
  /** The key that pays: its limits and rules apply to each item at the moment it runs. */
  keyHash: string;
  shape: BatchShape;
  /** Headers of the submission, in lower case; they apply to each item. */
  headers: Readonly<Record<string, string>>;
  /** The root that received the batch. */
  region: string;
  endpoint: BatchEndpoint;
  /** Null: each item names its own model. */
  model: string | null;
  provider: BatchPreferences | null;
  state: BatchState;
  createdAt: Date;
  /** When it entered the state; null if it has not. */
  inProgressAt: Date | null;
  finalizingAt: Date | null;
  /** The end of the window: items that have not begun by then do not run. */
  expiresAt: Date;
  finalizedAt: Date | null;
  /** When the client cancelled it; null if it did not. */
  cancelledAt: Date | null;
  total: number;
  completed: number;
  /** Includes items that never ran. */
  failed: number;
  /** Items that never ran, because the batch was cancelled. */
  cancelled: number;
  /** Items that never ran, because the batch expired. */
  expired: number;
  /** Sums over the results, by `UsageCount`; null before the batch is final, or if nothing was used. */
  usage: UsageCounts | null;
  error: string | null;
  /** The retention is over, and inputs and results are removed. */
  purgedAt: Date | null;
  /** The client's idempotency key, unique in the workspace, with the hash of the body that it belongs to. */
  idempotencyKey: string | null;
  bodySha256: Buffer | null;
  /** When a process last began to work on it. */
  seenAt: Date;
}

const ID_PREFIX = 'batch_';

export function wireId(id: string, prefix = ID_PREFIX): string {
  return prefixedId(prefix, id);
}

/** The UUID of a wire id; undefined if the text is not a wire id. */
export function storedId(text: string, prefix = ID_PREFIX): string | undefined {
  return uuidOf(prefix, text);
}

/** Without results. */
export function batchReply(batch: Batch) {
  return {
    id: wireId(batch.id),
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    completion_window: '24h',
    status: batch.state,
    created_at: unixSeconds(batch.createdAt),
    expires_at: unixSeconds(batch.expiresAt),
    finalized_at: batch.finalizedAt && unixSeconds(batch.finalizedAt),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: batch.usage && usageReply(batch.usage, batch.endpoint),
    error: batch.error === null ? null : { message: batch.error },
  };
}

/** For the audit log. */
export function resourceOf({ id, workspaceId }: Batch) {
  return { resourceType: 'batch', resourceId: wireId(id), workspaceId };
}
