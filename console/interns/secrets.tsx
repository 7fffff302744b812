/** Secrets of an intern: its own, copies of those of the workspace, and all that it may use. */
import { useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { api } from '../api.ts';
import { useAll, useApi, useChange } from '../query.ts';
import { Button, Card, Empty, Problem, Waiting } from '../ui/basics.tsx';
import { Check, Dialog, Form } from '../ui/forms.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { OF_INTERN, RemoveSecret, StoreSecret, secretColumns } from '../vault/secrets.tsx';

const PAGE = 50;
const MOST = 100;

export function InternSecrets({ intern: { id, attached_vault_id: borrowed } }: { intern: ApiIntern }) {
  const offset = useOffset();
  const path = { internId: id };
  const own = useApi('GET /vault/interns/{internId}/secrets', { path, query: { offset, limit: PAGE } });
  const [action, setAction] = useState<'store' | 'copy'>();
  const [removing, setRemoving] = useState<string>();
  const close = () => setAction(undefined);
  return (
    <>
      <PagedList
        title="Its own secrets"
        actions={
          <>
            <Button onClick={() => setAction('copy')}>Copy from the workspace</Button>
            <Button kind="main" icon="plus" onClick={() => setAction('store')}>
              Store a secret
            </Button>
          </>
        }
        label="Its own secrets"
        reading={own}
        rows={own.data?.data}
        empty={
          <Empty icon="vault" title="No secrets of its own">
            <p>Code in its sandbox uses a secret without seeing it, at the hosts that you name.</p>
          </Empty>
        }
        pages={{ size: PAGE }}
        keyOf={({ name }) => name}
        columns={secretColumns(setRemoving)}
      />
      {borrowed !== null && <Effective intern={id} />}
      {action === 'store' && <StoreSecret intern={id} onClose={close} />}
      {action === 'copy' && <CopySecrets intern={id} onClose={close} />}
      {removing !== undefined && <RemoveSecret intern={id} name={removing} onClose={() => setRemoving(undefined)} />}
    </>
  );
}

/** With those of the vault that it borrows; of two with the same name, its own. */
function Effective({ intern }: { intern: string }) {
  const { data, error } = useApi('GET /vault/interns/{internId}/effective-secrets', {
    path: { internId: intern },
    query: { limit: MOST },
  });
  return (
    <Card title="All that it may use, with the vault that it borrows" flush>
      <Problem error={error} />
      {data === undefined ? (
        error === null && <Waiting lines={2} />
      ) : data.data.length === 0 ? (
        <p class="soft pad">It may use no secret.</p>
      ) : (
        <Table label="All that it may use" rows={data.data} keyOf={({ name }) => name} columns={secretColumns()} />
      )}
      {data?.has_more && <p class="soft pad">These are the first {MOST}.</p>}
    </Card>
  );
}

function CopySecrets({ intern, onClose }: { intern: string; onClose(): void }) {
  const { data, error } = useAll('GET /vault/secrets');
  const [names, setNames] = useState<readonly string[]>([]);
  const change = useChange(
    () =>
      api('POST /vault/interns/{internId}/secrets/copy', { path: { internId: intern }, body: { names: [...names] } }),
    OF_INTERN,
    onClose,
  );
  return (
    <Dialog title="Copy secrets of the workspace" onClose={onClose}>
      <Form submit="Copy" change={change} disabled={names.length === 0} onCancel={onClose}>
        <Problem error={error} />
        <p class="soft">Copies stay when the secret of the workspace changes. They replace those of the same name.</p>
        <div class="checks scroll">
          {data?.rows.map(({ name }) => (
            <Check
              key={name}
              label={<span class="mono">{name}</span>}
              checked={names.includes(name)}
              onChange={(checked) => setNames(checked ? [...names, name] : names.filter((each) => each !== name))}
            />
          ))}
        </div>
        {data?.rows.length === 0 && <p>The workspace has no secrets.</p>}
      </Form>
    </Dialog>
  );
}
