/** Secrets of the workspace, bound to hosts. Their values are never shown. */
import { useState } from 'preact/hooks';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { useParams } from '../route.ts';
import { Badge, Button, Empty, Note, Page } from '../ui/basics.tsx';
import { dayText } from '../ui/format.ts';
import { Area, Confirm, Dialog, Form, Text } from '../ui/forms.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded } from '../ui/inference-key.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';

const PAGE = 50;
const HIDDEN = 404;

export function Vault({ session }: PageParts) {
  const { params, set } = useParams();
  const offset = useOffset();
  const [removing, setRemoving] = useState<string>();
  const reading = useApi(
    'GET /vault/secrets',
    { query: { offset, limit: PAGE } },
    { enabled: session.inference_key !== null },
  );
  if (session.inference_key === null) {
    return (
      <Page title="Vault">
        <InferenceKeyNeeded what="The vault" />
      </Page>
    );
  }
  return (
    <Page
      title="Vault"
      about="Secrets of the key's workspace. Code in a sandbox uses them without seeing them, at the hosts that you name."
      actions={
        <>
          <InferenceKeyInUse session={session} />
          {reading.data !== undefined && (
            <Button kind="main" icon="plus" onClick={() => set({ new: 'secret' })}>
              Store a secret
            </Button>
          )}
        </>
      }
    >
      {reading.error?.status === HIDDEN ? (
        <Note>
          This key does not take part in the interns programme (<code>intern_programme</code> in the configuration), so
          it has no vault.
        </Note>
      ) : (
        <PagedList
          label="Secrets"
          reading={reading}
          rows={reading.data?.data}
          empty={<Empty icon="vault" title="No secrets" />}
          pages={{ size: PAGE }}
          keyOf={({ name }) => name}
          columns={[
            { head: 'Name', cell: (item) => <span class="mono">{item.name}</span> },
            {
              head: 'Hosts',
              cell: (item) => (
                <span class="badges">
                  {item.hosts.map((host) => (
                    <Badge key={host}>{host}</Badge>
                  ))}
                </span>
              ),
            },
            {
              head: 'Fingerprint',
              minor: true,
              cell: (item) => <span class="mono small soft">{item.fingerprint}</span>,
            },
            { head: 'Stored', end: true, minor: true, cell: (item) => dayText(item.created_at) },
            {
              head: 'Change',
              end: true,
              cell: (item) => (
                <Button
                  kind="quiet"
                  icon="trash"
                  label={`Delete ${item.name}`}
                  onClick={() => setRemoving(item.name)}
                />
              ),
            },
          ]}
        />
      )}{' '}
      {params.get('new') === 'secret' && <StoreSecret onClose={() => set({ new: undefined }, true)} />}
      {removing !== undefined && <RemoveSecret name={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

function StoreSecret({ onClose }: { onClose(): void }) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [hosts, setHosts] = useState('');
  const list = hosts.split(/[\s,]+/).filter(Boolean);
  const change = useChange(
    () => api('PUT /vault/secrets/{name}', { path: { name }, body: { value, hosts: list } }),
    ['GET /vault/secrets'],
    onClose,
  );
  return (
    <Dialog title="Store a secret" onClose={onClose}>
      <Form submit="Store" change={change} onCancel={onClose}>
        <Text
          label="Name"
          required
          code
          value={name}
          onInput={setName}
          placeholder="github_token"
          hint="An existing secret of this name is replaced"
        />
        <Text label="Value" type="password" required value={value} onInput={setValue} />
        <Area
          label="Hosts"
          code
          rows={2}
          value={hosts}
          onInput={setHosts}
          placeholder="api.github.com"
          hint="Only these get the value"
        />
      </Form>
    </Dialog>
  );
}

function RemoveSecret({ name, onClose }: { name: string; onClose(): void }) {
  const change = useChange(
    () => api('DELETE /vault/secrets/{name}', { path: { name } }),
    ['GET /vault/secrets'],
    onClose,
  );
  return (
    <Confirm title={`Delete ${name}?`} action="Delete the secret" change={change} onClose={onClose}>
      <p>Its value is lost. Code that uses it is refused by the service from now on.</p>
    </Confirm>
  );
}
