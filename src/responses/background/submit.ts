/** Queues a background response, if limits and budgets allow it, and answers its client at once. */
import type { Caller } from '../../access/index.ts';
import { stringifyJson } from '../../base/json.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import type { Exchange } from '../../http/operation.ts';
import { type AcceptedRequest, askAhead, type HttpSink, type InferenceParts } from '../../inference/index.ts';
import type { Jobs } from '../../jobs/index.ts';
import type { Database } from '../../storage/database.ts';
import type { Claims } from '../claims.ts';
import type { NewResponse } from '../new-response.ts';
import { stateMembers, type Wanted } from '../wanted.ts';
import { insertEvents } from './events.sql.ts';
import { firstEvents, sealedEvents } from './events.ts';
import { type EventAnnouncements, follow } from './follow.ts';
import { keptAbout, type QueuedRequest } from './queued-request.ts';
import type { BackgroundRunner } from './run.ts';

export interface SubmitParts {
  database: Database;
  inference: InferenceParts;
  jobs: Pick<Jobs, 'send'>;
  runner: Pick<BackgroundRunner, 'kind'>;
  announcements: EventAnnouncements;
  claims: Claims;
}

interface Submitted {
  request: AcceptedRequest<ServedFormat>;
  made: NewResponse;
  wanted: Wanted;
}

export async function submit(
  exchange: Exchange<Caller>,
  client: HttpSink,
  { request, made, wanted }: Submitted,
  parts: SubmitParts,
): Promise<void> {
  const headers = { ...(await askAhead(request, parts.inference)), 'x-generation-id': request.id };
  const { row, key, answer, insert } = made;
  const queued: QueuedRequest = {
    body: request.document.bytes.toString(),
    about: keptAbout(request.about),
    members: stateMembers(wanted),
  };
  await parts.database.transaction(async (tx) => {
    await insert(tx, row, key.seal('request', stringifyJson(queued)));
    if (row.streamed) await insertEvents(tx, row.id, sealedEvents(key, firstEvents(answer)));
    await parts.jobs.send(parts.runner.kind, { id: row.id }, { tx });
  });
  if (!row.streamed) {
    exchange.reply(200, JSON.parse(answer), headers);
    return;
  }
  const followed = { id: row.id, workspaceId: row.workspaceId, key, after: -1, headers };
  const { clock, keepAliveComment } = parts.inference;
  await follow(client, followed, { ...parts, clock, keepAliveComment });
}
