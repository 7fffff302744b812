/** A native batch: a part of a batch that a provider runs in its own batch interface. */
import { type Caller, callerWithoutRules } from '../../access/index.ts';
import {
  atBatch,
  type Candidate,
  credentialOf,
  type InferenceParts,
  notConfigured,
  targetOf,
} from '../../inference/index.ts';
import type { BatchAccount, BatchService, Delivery } from '../../providers/index.ts';
import type { Batch } from '../batch.ts';

export interface NativePart {
  /** UUID; also our marker at the provider. */
  id: string;
  batchId: string;
  keyId: string;
  endpointId: string;
  /** The catalog's id. */
  model: string;
  /** Fingerprint of the credential, because only its account knows the batch. */
  credential: string;
  byokId: string | null;
  format: Delivery['format'];
  path: string;
  items: number;
  bytes: number;
  blobId: string;
  createdAt: Date;
  /** The first attempt to submit it. */
  beganAt: Date | null;
  /** The last attempt to submit it whose outcome is unknown. */
  triedAt: Date | null;
  uploadId: string | null;
  upstreamId: string | null;
  /** Batches of the account that were mistaken for this one. */
  notOurs: readonly string[];
  /** The provider was asked to cancel it. */
  cancelled: boolean;
  /** Failures in a row. */
  failures: number;
  polls: number;
  turn: number;
}

/** The id of an item at the provider: no id of a client can be one that the provider refuses. */
export function itemId(partId: string, position: number): string {
  return `${partId.replaceAll('-', '')}x${position}`;
}

/** Undefined for an id that is not of an item. */
export function positionOf(partId: string, id: string): number | undefined {
  const prefix = `${partId.replaceAll('-', '')}x`;
  const digits = id.startsWith(prefix) ? id.slice(prefix.length) : '';
  return /^\d{1,9}$/.test(digits) ? Number(digits) : undefined;
}

/** Where the calls of a part go, by the present configuration. */
interface Place {
  candidate: Candidate;
  service: BatchService;
  account: BatchAccount;
}

/**
 * @param batch undefined: it was deleted
 * @throws GatewayError 503 while the endpoint or its credential is not configured
 */
export function placeOf(part: NativePart, batch: Batch | undefined, inference: InferenceParts): Place {
  const endpoint = inference
    .catalog()
    .find(part.model)
    ?.endpoints.find(({ id }) => id === part.endpointId);
  const service = endpoint?.provider.kind.batches;
  if (endpoint === undefined || service === undefined) throw notConfigured(`the endpoint ${part.endpointId}`);
  const caller = batch && lastCaller(batch, '');
  const credential = credentialOf(part, endpoint, caller, inference.byokCredentials);
  const candidate = atBatch({ endpoint, rank: 0, ...credential });
  const target = targetOf(candidate, inference.credentials.choose(candidate));
  return { candidate, service, account: { target, parts: inference, clientHeaders: batch?.headers ?? {} } };
}

/** Whether its provider may have stored something of it. */
export function mayHaveData({ uploadId, upstreamId, triedAt }: NativePart): boolean {
  return uploadId !== null || upstreamId !== null || triedAt !== null;
}

/** As on the wire; the id of an endpoint that is no longer configured. */
export function providerNameOf(
  { model, endpointId }: NativePart,
  { catalog }: Pick<InferenceParts, 'catalog'>,
): string {
  const endpoint = catalog()
    .find(model)
    ?.endpoints.find(({ id }) => id === endpointId);
  return endpoint?.provider.name ?? endpointId;
}

/** For what must be paid although the key of the batch may no longer be used. */
export function lastCaller({ keyHash, organizationId, workspaceId }: Batch, keyId: string): Caller {
  return callerWithoutRules({ keyId, keyHash, organizationId, workspaceId });
}
