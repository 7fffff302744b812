/** Interns of the workspace of the session's inference key: created, started, suspended and deleted here. */
import { useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { useParams } from '../route.ts';
import { Badge, Button, Empty, Note, Page, Problem, Time, type Tone } from '../ui/basics.tsx';
import { NONE } from '../ui/format.ts';
import { Area, Check, Confirm, Dialog, Form, Text } from '../ui/forms.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded } from '../ui/inference-key.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';

const PAGE = 50;
const HIDDEN = 404;
const LIVE_MS = 3_000;
const TONES: Readonly<Record<string, Tone>> = {
  running: 'good',
  queued: 'info',
  provisioning: 'info',
  failed: 'bad',
  destroy_failed: 'bad',
};
const STARTED = new Set(['queued', 'provisioning', 'running']);

export function Interns({ session }: PageParts) {
  const { params, set } = useParams();
  const cursor = useCursor();
  const [removing, setRemoving] = useState<ApiIntern>();
  const reading = useApi(
    'GET /interns',
    { query: { limit: PAGE, ...(cursor && { starting_after: cursor }) } },
    { enabled: session.inference_key !== null, every: LIVE_MS },
  );
  const change = useChange(
    ({ id, status }: ApiIntern): Promise<unknown> =>
      STARTED.has(status)
        ? api('POST /interns/{internId}/suspend', { path: { internId: id } })
        : api('POST /interns/{internId}/provision', { path: { internId: id } }),
    ['GET /interns'],
  );
  if (session.inference_key === null) {
    return (
      <Page title="Interns">
        <InferenceKeyNeeded what="This page" />
      </Page>
    );
  }
  return (
    <Page
      title="Interns"
      about="Agents that work in sandboxes of their own, each with its vault and key."
      actions={
        <>
          <InferenceKeyInUse session={session} />
          {reading.data !== undefined && (
            <Button kind="main" icon="plus" onClick={() => set({ new: 'intern' })}>
              Create an intern
            </Button>
          )}
        </>
      }
    >
      <Problem error={change.error} />
      {reading.error?.status === HIDDEN ? (
        <Note>This key does not take part in the interns programme, so it sees no interns.</Note>
      ) : (
        <PagedList
          label="Interns"
          reading={reading}
          rows={reading.data?.data}
          empty={<Empty icon="interns" title="No interns" />}
          pages={{ next: reading.data?.next_cursor }}
          keyOf={({ id }) => id}
          columns={[
            { head: 'Name', cell: (intern) => <span class="clip">{intern.name}</span> },
            { head: 'State', cell: (intern) => <InternState intern={intern} /> },
            { head: 'Model', minor: true, cell: (intern) => <span class="mono clip">{intern.model ?? NONE}</span> },
            { head: 'Created', minor: true, cell: (intern) => <Time at={intern.created_at} exact /> },
            {
              head: 'Change',
              end: true,
              cell: (intern) => (
                <>
                  <Button kind="quiet" busy={change.isPending} onClick={() => change.mutate(intern)}>
                    {STARTED.has(intern.status) ? 'Suspend' : 'Start'}
                    <span class="unseen"> {intern.name}</span>
                  </Button>
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={`Delete ${intern.name}`}
                    onClick={() => setRemoving(intern)}
                  />
                </>
              ),
            },
          ]}
        />
      )}{' '}
      {params.get('new') === 'intern' && <CreateIntern onClose={() => set({ new: undefined }, true)} />}
      {removing && <RemoveIntern intern={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

function InternState({ intern: { status, progress, last_failure_message: failure } }: { intern: ApiIntern }) {
  return (
    <span class="badges">
      <Badge tone={TONES[status] ?? 'plain'}>{status.replaceAll('_', ' ')}</Badge>
      {progress !== null && STARTED.has(status) && (
        <span class="soft small">
          {progress.step_label} ({progress.step_number} of {progress.total_steps})
        </span>
      )}
      {failure !== null && status === 'failed' && <span class="small clip">{failure}</span>}
    </span>
  );
}

function CreateIntern({ onClose }: { onClose(): void }) {
  const [name, setName] = useState('');
  const [starts, setStarts] = useState(true);
  const [instructions, setInstructions] = useState('');
  const change = useChange(
    () =>
      api('POST /interns', {
        body: { name, provision: starts, ...(instructions !== '' && { instructions }) },
      }),
    ['GET /interns'],
    onClose,
  );
  return (
    <Dialog title="Create an intern" onClose={onClose}>
      <Form submit="Create" change={change} onCancel={onClose}>
        <Text label="Name" required code value={name} onInput={setName} placeholder="release-notes" />
        <Area label="Instructions" rows={5} value={instructions} onInput={setInstructions} />
        <Check label="Start it now" checked={starts} onChange={setStarts} />
      </Form>
    </Dialog>
  );
}

function RemoveIntern({ intern, onClose }: { intern: ApiIntern; onClose(): void }) {
  const [lossy, setLossy] = useState(false);
  const change = useChange(
    () =>
      api('DELETE /interns/{internId}', {
        path: { internId: intern.id },
        body: { acknowledge_workspace_loss: lossy },
      }),
    ['GET /interns'],
    onClose,
  );
  return (
    <Confirm
      title={`Delete ${intern.name}?`}
      action="Delete the intern"
      word={intern.name}
      change={change}
      onClose={onClose}
    >
      <p>This cannot be undone.</p>
      <ul>
        <li>Its sandbox stops, and its workspace is archived.</li>
        <li>Its vault with all of its secrets, and its key, are lost.</li>
      </ul>
      <Check label="Delete it even if its workspace cannot be archived" checked={lossy} onChange={setLossy} />
    </Confirm>
  );
}
