/** Batches of the workspace of the session's inference key: progress, failed items, results. */
import { useState } from 'preact/hooks';
import type { ApiBatch, ApiOpenaiBatch } from '../api.gen.ts';
import { api, request } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link } from '../route.ts';
import {
  Badge,
  Button,
  Card,
  Code,
  Empty,
  Facts,
  Note,
  Page,
  Problem,
  Time,
  type Tone,
  Waiting,
} from '../ui/basics.tsx';
import { count, usd } from '../ui/format.ts';
import { Confirm } from '../ui/forms.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded } from '../ui/inference-key.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';
import { saveAs } from '../ui/save.ts';

const PAGE = 50;
const LIVE_MS = 3_000;
const SECOND_MS = 1_000;
const TONES: Readonly<Record<string, Tone>> = {
  completed: 'good',
  failed: 'bad',
  expired: 'bad',
  cancelled: 'warn',
  cancelling: 'warn',
  in_progress: 'info',
  finalizing: 'info',
};
const FINAL = new Set(['completed', 'failed', 'expired', 'cancelled']);

/** Batches are shown in the schema of the interface that made them. */
type AnyBatch = ApiBatch | ApiOpenaiBatch;

export function Batches({ session, rest }: PageParts) {
  if (session.inference_key === null) {
    return (
      <Page title="Batches">
        <InferenceKeyNeeded what="This page" />
      </Page>
    );
  }
  return rest === '' ? <BatchList session={session} rest={rest} /> : <BatchDetail key={rest} id={rest} />;
}

function BatchList({ session }: PageParts) {
  const cursor = useCursor();
  const reading = useApi(
    'GET /batches',
    { query: { limit: PAGE, ...(cursor && { after: cursor }) } },
    { every: LIVE_MS },
  );
  const rows: readonly AnyBatch[] | undefined = reading.data?.data;
  return (
    <Page
      title="Batches"
      about="Many requests in the background, of the workspace of the chosen key."
      actions={<InferenceKeyInUse session={session} />}
    >
      <PagedList
        reading={reading}
        rows={rows}
        empty={
          <Empty icon="batches" title="No batches">
            <p>
              <code>npx gatehouse batch submit requests.jsonl</code> creates one; so do the SDKs of OpenAI and
              Anthropic.
            </p>
          </Empty>
        }
        pages={{ next: reading.data?.has_more ? reading.data.last_id : undefined }}
        label="Batches"
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/batches/${id}`)}
        columns={[
          { head: 'Created', cell: (batch) => <Time at={batch.created_at * SECOND_MS} exact /> },
          {
            head: 'State',
            cell: (batch) => <Badge tone={TONES[batch.status] ?? 'plain'}>{batch.status.replaceAll('_', ' ')}</Badge>,
          },
          {
            head: 'Model',
            minor: true,
            cell: (batch) => <span class="mono clip">{batch.model ?? 'several'}</span>,
          },
          { head: 'Progress', cell: (batch) => <Progress batch={batch} /> },
          { head: 'Failed', end: true, cell: (batch) => count(batch.request_counts?.failed) },
        ]}
      />
    </Page>
  );
}

function Progress({ batch: { request_counts: counts } }: { batch: AnyBatch }) {
  const done = (counts?.completed ?? 0) + (counts?.failed ?? 0);
  const total = counts?.total ?? 0;
  return (
    <span class="limit start">
      <span>
        {count(done)} of {count(total)}
      </span>
      <progress max={Math.max(total, 1)} value={done} aria-label={`${done} of ${total} requests are done`} />
    </span>
  );
}

function BatchDetail({ id }: { id: string }) {
  const [action, setAction] = useState<'cancel' | 'delete'>();
  const [results, setResults] = useState<string>();
  const { data, error, refetch } = useApi(
    'GET /batches/{id}',
    { path: { id }, query: { results: false } },
    { every: LIVE_MS },
  );
  const batch: AnyBatch | undefined = data;
  const stale = ['GET /batches', 'GET /batches/{id}'] as const;
  const close = () => setAction(undefined);
  const cancel = useChange(() => api('POST /batches/{id}/cancel', { path: { id } }), stale, close);
  const remove = useChange(
    () => api('DELETE /batches/{id}', { path: { id } }),
    ['GET /batches'],
    () => go(link('/batches')),
  );
  const download = useChange(async () =>
    (await request('GET', `../api/v1/batches/${encodeURIComponent(id)}/results`, {})).text(),
  );
  const isFinal = batch !== undefined && FINAL.has(batch.status);
  return (
    <Page
      title="Batch"
      about={<span class="mono">{id}</span>}
      actions={
        batch && (
          <>
            {!isFinal && <Button onClick={() => setAction('cancel')}>Cancel</Button>}
            {isFinal && (
              <>
                <Button
                  busy={download.isPending}
                  onClick={() => download.mutate(undefined, { onSuccess: (text) => saveAs(`${id}.jsonl`, text) })}
                >
                  Download the results
                </Button>
                {batch.request_counts.failed > 0 && (
                  <Button onClick={() => download.mutate(undefined, { onSuccess: setResults })}>
                    Show failed requests
                  </Button>
                )}
                <ItemActions onDelete={() => setAction('delete')} />
              </>
            )}
          </>
        )
      }
    >
      <Problem error={error ?? download.error} retry={() => void refetch()} />
      {batch === undefined ? (
        error === null && <Waiting />
      ) : (
        <Card
          title="Batch"
          actions={<Badge tone={TONES[batch.status] ?? 'plain'}>{batch.status.replaceAll('_', ' ')}</Badge>}
        >
          <Refusals messages={refusalsOf(batch)} />
          <Facts
            rows={[
              ['Progress', <Progress key="progress" batch={batch} />],
              ['Succeeded', count(batch.request_counts?.completed)],
              ['Failed', count(batch.request_counts?.failed)],
              ['Model', batch.model ?? 'several'],
              ['Endpoint', batch.endpoint],
              ['Cost', usd((batch.usage as { cost?: number } | null)?.cost)],
              ['Created', <Time key="created" at={batch.created_at * SECOND_MS} exact />],
              ['Ended', <Time key="ended" at={endOf(batch)} exact />],
            ]}
          />
        </Card>
      )}
      {results !== undefined && <Failed results={results} />}
      {action === 'cancel' && (
        <Confirm title="Cancel this batch?" action="Cancel the batch" change={cancel} onClose={close}>
          <p>Requests that have not begun do not run. Results so far are kept, and what has begun is charged.</p>
        </Confirm>
      )}
      {action === 'delete' && (
        <Confirm title="Delete this batch?" action="Delete the batch" change={remove} onClose={close}>
          <p>Its requests and results are lost. The records of what it cost stay.</p>
        </Confirm>
      )}
    </Page>
  );
}

function refusalsOf(batch: AnyBatch): readonly string[] {
  if ('errors' in batch) return (batch.errors?.data ?? []).map(({ message }) => message);
  return batch.error === null ? [] : [batch.error.message];
}

function endOf(batch: AnyBatch): number | undefined {
  const at =
    'finalized_at' in batch
      ? batch.finalized_at
      : (batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at);
  return at === null ? undefined : at * SECOND_MS;
}

/** Why the batch did not run, in the gateway's words: what is wrong in which line of its file. */
function Refusals({ messages }: { messages: readonly string[] }) {
  if (messages.length === 0) return null;
  return (
    <Note tone="bad">
      {messages.slice(0, MOST_SHOWN).map((message) => (
        <p key={message}>{message}</p>
      ))}
      {messages.length > MOST_SHOWN && <p>{count(messages.length - MOST_SHOWN)} more.</p>}
    </Note>
  );
}

const MOST_SHOWN = 50;

function Failed({ results }: { results: string }) {
  const failed = results.split('\n').filter((line) => line !== '' && /"error":\s*\{|"status_code":\s*[45]/.test(line));
  if (failed.length === 0) return <Note tone="good">No request failed.</Note>;
  return (
    <Card
      title={`${count(failed.length)} failed requests${failed.length > MOST_SHOWN ? `, the first ${MOST_SHOWN}` : ''}`}
    >
      <Code label="failed requests" text={failed.slice(0, MOST_SHOWN).join('\n')} />
    </Card>
  );
}
