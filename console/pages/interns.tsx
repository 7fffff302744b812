/** Interns of the workspace of the session's inference key: created, started, suspended and deleted here. */
import { useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { InternDetail } from '../interns/detail.tsx';
import { InternState, RemoveIntern, STARTED, useStartStop } from '../interns/parts.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Button, Empty, Page, Problem, Time } from '../ui/basics.tsx';
import { NONE } from '../ui/format.ts';
import { Area, Check, Dialog, Form, Text } from '../ui/forms.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded, OutsideOfProgramme } from '../ui/inference-key.tsx';
import { ActionInRow, DeleteInRow } from '../ui/item-actions.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';

const PAGE = 50;
const HIDDEN = 404;
const LIVE_MS = 3_000;

export function Interns({ session, rest }: PageParts) {
  if (session.inference_key === null) {
    return (
      <Page title="Interns">
        <InferenceKeyNeeded what="This page" />
      </Page>
    );
  }
  return rest === '' ? <InternList session={session} rest={rest} /> : <InternDetail key={rest} id={rest} />;
}

function InternList({ session }: PageParts) {
  const { params, set } = useParams();
  const cursor = useCursor();
  const [removing, setRemoving] = useState<ApiIntern>();
  const close = () => setRemoving(undefined);
  const reading = useApi(
    'GET /interns',
    { query: { limit: PAGE, ...(cursor && { starting_after: cursor }) } },
    { every: LIVE_MS },
  );
  const change = useStartStop();
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
        <OutsideOfProgramme session={session} />
      ) : (
        <PagedList
          label="Interns"
          reading={reading}
          rows={reading.data?.data}
          empty={
            <Empty icon="interns" title="No interns">
              <p>Create one, start it, and talk to it here.</p>
            </Empty>
          }
          pages={{ next: reading.data?.next_cursor }}
          keyOf={({ id }) => id}
          linkOf={({ id }) => link(`/interns/${id}`)}
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
                  <ActionInRow name={intern.name} busy={change.isPending} onClick={() => change.mutate(intern)}>
                    {STARTED.has(intern.status) ? 'Suspend' : 'Start'}
                  </ActionInRow>
                  <DeleteInRow name={intern.name} onClick={() => setRemoving(intern)} />
                </>
              ),
            },
          ]}
        />
      )}
      {params.get('new') === 'intern' && <CreateIntern onClose={() => set({ new: undefined }, true)} />}
      {removing && <RemoveIntern intern={removing} onClose={close} onRemoved={close} />}
    </Page>
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
    (intern) => go(link(`/interns/${intern.id}`), true),
  );
  return (
    <Dialog title="Create an intern" onClose={onClose}>
      <Form submit="Create" change={change} onCancel={onClose}>
        <Text
          label="Name"
          required
          code
          maxLength={17}
          value={name}
          onInput={setName}
          placeholder="release-notes"
          hint="2 to 17 lower-case letters, digits and single dashes"
        />
        <Area label="Instructions" rows={5} value={instructions} onInput={setInstructions} />
        <Check label="Start it now" checked={starts} onChange={setStarts} />
      </Form>
    </Dialog>
  );
}
