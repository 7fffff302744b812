/** A response that is about to be stored. */
import type { Clock } from '../base/clock.ts';
import type { RetentionSettings } from '../base/config.ts';
import { stringifyJson } from '../base/json.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { responseOf } from '../formats/index.ts';
import type { AcceptedRequest } from '../inference/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { History } from './history.ts';
import { responseIdOf, type StoredResponse } from './response.ts';
import { type DataKey, newDataKey } from './sealed.ts';
import { stampOf } from './stamp.ts';
import * as store from './store.ts';
import type { Wanted } from './wanted.ts';

const DAY_MS = 86_400_000;

interface About {
  wanted: Wanted;
  history: History | undefined;
  /** JSON of a list: see `Contents`. */
  input: string;
  contextItems: number;
}

export interface NewResponse {
  /** Queued. */
  row: StoredResponse;
  key: DataKey;
  /** JSON of it, before its first event. */
  answer: string;
  /** @param request encrypted, for a response that is run later */
  insert(tx: Queryable, row: StoredResponse, request: Buffer | null): Promise<void>;
}

interface NewResponseParts {
  clock: Clock;
  sealing: Sealing;
  retention(): RetentionSettings;
}

/** @throws GatewayError 503 */
export async function newResponse(
  request: AcceptedRequest<ServedFormat>,
  { wanted, history, input, contextItems }: About,
  { clock, sealing, retention }: NewResponseParts,
): Promise<NewResponse> {
  const { caller, facts } = request;
  const stamp = stampOf(request);
  const status = wanted.background ? 'queued' : 'in_progress';
  const answer = stringifyJson({
    ...responseOf(stamp, { status: 'in_progress', output: [], created: stamp.created }),
    status,
  });
  const id = responseIdOf(request.id);
  const { key, record } = await newDataKey(sealing, id);
  const contents = { input: key.seal('input', input), answer: key.seal('answer', answer) };
  const row: StoredResponse = {
    id,
    organizationId: caller.organizationId,
    workspaceId: caller.workspaceId,
    keyHash: caller.keyHash,
    status,
    previousId: wanted.previousId,
    conversationId: wanted.conversationId,
    background: wanted.background,
    streamed: facts.stream,
    // As in the answer: the clock may have gone on to the next second since.
    createdAt: new Date(request.startedAt),
    expiresAt: new Date(clock.now() + retention().responsesDays * DAY_MS),
    claim: null,
    claimedUntil: null,
    dataKey: record,
    bytes: contents.input.length + contents.answer.length,
    contextItems,
  };
  return {
    row,
    key,
    answer,
    async insert(tx, made, queued) {
      await store.insertResponse(tx, { ...made, ...contents, request: queued });
      if (history !== undefined) await store.keepUntil(tx, history.ids, made.expiresAt);
    },
  };
}
