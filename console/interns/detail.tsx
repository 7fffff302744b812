/** One intern: talking to it, its secrets, its settings. */
import { useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { api } from '../api.ts';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Button, Card, Copy, Facts, Note, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { useDifference } from '../ui/difference.ts';
import { NONE } from '../ui/format.ts';
import { Area, Dialog, Form, Segments, Text } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { Chat } from './chat.tsx';
import { INTERNS, InternState, RemoveIntern, STARTED, useStartStop } from './parts.tsx';
import { InternSecrets } from './secrets.tsx';

const LIVE_MS = 3_000;
const VIEWS = [
  ['', 'Chat'],
  ['secrets', 'Secrets'],
  ['settings', 'Settings'],
] as const;

export function InternDetail({ id }: { id: string }) {
  const { params, set } = useParams();
  const {
    data: intern,
    error,
    refetch,
  } = useApi('GET /interns/{internId}', { path: { internId: id } }, { every: LIVE_MS });
  const [action, setAction] = useState<'edit' | 'delete'>();
  const close = () => setAction(undefined);
  const change = useStartStop();
  const view = params.get('view') ?? '';
  return (
    <Page
      title={intern?.name ?? 'Intern'}
      about={intern && <InternState intern={intern} />}
      actions={
        intern && (
          <>
            <Segments label="View" value={view} options={VIEWS} onChange={(next) => set({ view: next }, true)} />
            <Button busy={change.isPending} onClick={() => change.mutate(intern)}>
              {STARTED.has(intern.status) ? 'Suspend' : 'Start'}
            </Button>
            <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')} />
          </>
        )
      }
    >
      <Problem error={error} retry={() => void refetch()} />
      <Problem error={change.error} />
      {intern === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          {intern.last_failure_message !== null && intern.status.endsWith('failed') && (
            <Note tone="bad">{intern.last_failure_message}</Note>
          )}
          {view === 'secrets' ? (
            <InternSecrets intern={intern} />
          ) : view === 'settings' ? (
            <Settings intern={intern} />
          ) : (
            <Chat intern={intern} />
          )}
          {action === 'edit' && <EditIntern intern={intern} onClose={close} />}
          {action === 'delete' && (
            <RemoveIntern intern={intern} onClose={close} onRemoved={() => go(link('/interns'))} />
          )}
        </>
      )}
    </Page>
  );
}

function Settings({ intern }: { intern: ApiIntern }) {
  return (
    <>
      <Card title="Intern">
        <Facts
          rows={[
            ['Description', intern.description ?? NONE],
            ['Model', intern.model ?? 'the default of the workspace'],
            [
              'Id',
              <span key="id" class="inline mono small">
                {intern.id} <Copy text={intern.id} label="Copy the id" />
              </span>,
            ],
            [
              'Workspace',
              <a key="workspace" href={link(`/workspaces/${intern.workspace_id}`)}>
                Open
              </a>,
            ],
            ['Created', <Time key="created" at={intern.created_at} exact />],
            ['Changed', <Time key="changed" at={intern.updated_at} exact />],
          ]}
        />
      </Card>
      <Card title="Instructions">
        <p class="prose">{intern.instructions ?? 'None.'}</p>
      </Card>
    </>
  );
}

function EditIntern({ intern, onClose }: { intern: ApiIntern; onClose(): void }) {
  const [name, setName] = useState(intern.name);
  const [description, setDescription] = useState(intern.description ?? '');
  const [model, setModel] = useState(intern.model ?? '');
  const [instructions, setInstructions] = useState(intern.instructions ?? '');
  const body = useDifference({
    name,
    description: description || null,
    model: model.trim() || null,
    instructions: instructions || null,
  });
  const change = useChange(
    () => api('PATCH /interns/{internId}', { path: { internId: intern.id }, body }),
    INTERNS,
    onClose,
  );
  return (
    <Dialog title={`Edit ${intern.name}`} wide onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <div class="form-row">
          <Text label="Name" member="name" required code maxLength={17} value={name} onInput={setName} />
          <Text
            label="Model"
            member="model"
            code
            value={model}
            onInput={setModel}
            hint="Empty: the default of the workspace"
          />
        </div>
        <Text label="Description" member="description" maxLength={2000} value={description} onInput={setDescription} />
        <Area
          label="Instructions"
          member="instructions"
          rows={8}
          value={instructions}
          onInput={setInstructions}
          hint="Model and instructions take effect when it is next started"
        />
      </Form>
    </Dialog>
  );
}
