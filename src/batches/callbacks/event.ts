/** The event that a callback delivers, signed as Standard Webhooks defines (https://www.standardwebhooks.com). */
import { createHmac, randomBytes } from 'node:crypto';
import { type Batch, batchReply } from '../batch.ts';

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

export function eventType(batch: Pick<Batch, 'state'>): string {
  return `batch.${batch.state}`;
}

interface CallbackRequest {
  headers: Record<string, string>;
  body: string;
}

/**
 * The same id and body in every attempt: a batch ends once.
 * @param secrets the header has one signature for each
 * @param now wall time in ms
 */
export function eventRequest(batch: Batch, secrets: readonly string[], now: number): CallbackRequest {
  const id = `evt_${batch.id.replaceAll('-', '')}`;
  const timestamp = String(Math.floor(now / 1000));
  const data = { ...batchReply(batch), results: null };
  const body = JSON.stringify({ id, object: 'event', type: eventType(batch), created_at: data.finalized_at, data });
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': secrets.map((secret) => signature(secret, `${id}.${timestamp}.${body}`)).join(' '),
    },
    body,
  };
}

function signature(secret: string, signed: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}
