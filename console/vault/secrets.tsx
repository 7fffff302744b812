/** Secrets of a workspace or of an intern: stored, shown without their values, deleted. */
import { useState } from 'preact/hooks';
import type { ApiVaultSecret } from '../api.gen.ts';
import { type ApiName, api } from '../api.ts';
import { useChange } from '../query.ts';
import { Badge } from '../ui/basics.tsx';
import { dayText } from '../ui/format.ts';
import { Area, Confirm, Dialog, Form, Text } from '../ui/forms.tsx';
import { DeleteInRow } from '../ui/item-actions.tsx';
import type { Column } from '../ui/table.tsx';

/** @param onRemove absent: they cannot be deleted here */
export function secretColumns(onRemove?: (name: string) => void): Column<ApiVaultSecret>[] {
  const shown: Column<ApiVaultSecret>[] = [
    { head: 'Name', cell: ({ name }) => <span class="mono">{name}</span> },
    {
      head: 'Hosts',
      cell: ({ hosts }) => (
        <span class="badges">
          {hosts.map((host) => (
            <Badge key={host}>{host}</Badge>
          ))}
        </span>
      ),
    },
    {
      head: 'Fingerprint',
      minor: true,
      cell: ({ fingerprint }) => (
        <span class="mono small soft clip" title={fingerprint}>
          {fingerprint}
        </span>
      ),
    },
    { head: 'Stored', end: true, minor: true, cell: (item) => dayText(item.created_at) },
  ];
  if (onRemove === undefined) return shown;
  return [
    ...shown,
    {
      head: 'Change',
      end: true,
      cell: ({ name }) => <DeleteInRow name={name} onClick={() => onRemove(name)} />,
    },
  ];
}

const OF_WORKSPACE = ['GET /vault/secrets'] as const satisfies readonly ApiName[];
export const OF_INTERN = [
  'GET /vault/interns/{internId}/secrets',
  'GET /vault/interns/{internId}/effective-secrets',
] as const satisfies readonly ApiName[];

/** @param intern absent: a secret of the workspace */
export function StoreSecret({ intern, onClose }: { intern?: string; onClose(): void }) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [hosts, setHosts] = useState('');
  const body = { value, hosts: hosts.split(/[\s,]+/).filter(Boolean) };
  const change = useChange(
    () =>
      intern === undefined
        ? api('PUT /vault/secrets/{name}', { path: { name }, body })
        : api('PUT /vault/interns/{internId}/secrets/{name}', { path: { internId: intern, name }, body }),
    intern === undefined ? OF_WORKSPACE : OF_INTERN,
    onClose,
  );
  return (
    <Dialog title="Store a secret" onClose={onClose}>
      <Form submit="Store" change={change} onCancel={onClose}>
        <Text
          label="Name"
          member="name"
          required
          code
          value={name}
          onInput={setName}
          placeholder="github_token"
          hint="An existing secret of this name is replaced"
        />
        <Text label="Value" member="value" type="password" required value={value} onInput={setValue} />
        <Area
          label="Hosts"
          member="hosts"
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

/** @param intern absent: a secret of the workspace */
export function RemoveSecret({ intern, name, onClose }: { intern?: string; name: string; onClose(): void }) {
  const change = useChange(
    () =>
      intern === undefined
        ? api('DELETE /vault/secrets/{name}', { path: { name } })
        : api('DELETE /vault/interns/{internId}/secrets/{name}', { path: { internId: intern, name } }),
    intern === undefined ? OF_WORKSPACE : OF_INTERN,
    onClose,
  );
  return (
    <Confirm title={`Delete ${name}?`} action="Delete the secret" change={change} onClose={onClose}>
      <p>Its value is lost. Code that uses it is refused by the service from now on.</p>
    </Confirm>
  );
}
