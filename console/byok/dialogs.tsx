/** The dialogs that add, edit and delete a BYOK credential. Its value is sent, and never shown. */
import { useState } from 'preact/hooks';
import type { ApiByokKey } from '../api.gen.ts';
import { api } from '../api.ts';
import { useApi, useChange } from '../query.ts';
import { useDifference } from '../ui/difference.ts';
import { Area, Check, Choice, Confirm, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { linesOrNull, textOf } from '../ui/lines.ts';
import { inWorkspace } from '../ui/workspace-choice.tsx';

/** As the fields have it. */
interface Draft {
  key: string;
  name: string;
  /** One a line. */
  models: string;
  keys: string;
  users: string;
  fallback: boolean;
  required: boolean;
  only: boolean;
  /** '' for null. */
  zdr: string;
}

const EMPTY: Draft = {
  ...{ key: '', name: '', models: '', keys: '', users: '' },
  ...{ fallback: false, required: false, only: false, zdr: '' },
};

const RETENTION: readonly Option[] = [
  ['', 'As known for the provider'],
  ['true', 'Nothing is retained'],
  ['false', 'Prompts may be retained'],
];

export function AddKey({ workspace, onClose }: { workspace: string; onClose(): void }) {
  const [provider, setProvider] = useState('');
  const [draft, setDraft] = useState(EMPTY);
  const providers = useApi('GET /providers');
  const change = useChange(
    () =>
      api('POST /byok', {
        body: { ...bodyOf(draft), provider, key: draft.key.trim(), ...inWorkspace(workspace) },
      }),
    ['GET /byok'],
    onClose,
  );
  return (
    <Dialog title="Add a BYOK credential" onClose={onClose}>
      <Form submit="Add" change={change} onCancel={onClose}>
        <Text
          label="Provider"
          member="provider"
          required
          value={provider}
          onInput={setProvider}
          list={(providers.data?.data ?? []).map(({ slug }) => slug)}
        />
        <Fields draft={draft} onChange={setDraft} />
      </Form>
    </Dialog>
  );
}

export function EditKey({ item, onClose }: { item: ApiByokKey; onClose(): void }) {
  const [draft, setDraft] = useState<Draft>({
    key: '',
    name: item.name ?? '',
    models: textOf(item.allowed_models),
    keys: textOf(item.allowed_api_key_hashes),
    users: textOf(item.allowed_user_ids),
    fallback: item.is_fallback,
    required: item.is_required,
    only: item.is_byok_only,
    zdr: item.declared_zdr === null ? '' : String(item.declared_zdr),
  });
  const body = useDifference(bodyOf(draft, item));
  const change = useChange(
    () => {
      const key = draft.key.trim();
      return api('PATCH /byok/{id}', {
        path: { id: item.id },
        body: { ...body, ...(key !== '' && { key }) },
      });
    },
    ['GET /byok'],
    onClose,
  );
  return (
    <Dialog title={`Edit the credential of ${item.provider}`} onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <Fields draft={draft} onChange={setDraft} isStored />
      </Form>
    </Dialog>
  );
}

/** What the key is restricted to, one entry a line. */
const LISTS = [
  ['models', 'allowed_models', 'Only for these models, one a line', 'Empty: all models of the provider'],
  ['keys', 'allowed_api_key_hashes', 'Only for these keys of the gateway, one hash a line', 'Empty: all keys'],
  [
    'users',
    'allowed_user_ids',
    'Only for keys of these members, one id a line',
    'Empty: all members. Ids begin with user_',
  ],
] as const;

interface FieldsProps {
  draft: Draft;
  onChange(draft: Draft): void;
  /** The gateway has a credential, which stays if none is given. */
  isStored?: boolean;
}

function Fields({ draft, onChange, isStored = false }: FieldsProps) {
  const set = (change: Partial<Draft>) => onChange({ ...draft, ...change });
  return (
    <>
      <Text
        label={isStored ? 'New key' : 'Key'}
        member="key"
        type="password"
        required={!isStored}
        value={draft.key}
        onInput={(key) => set({ key })}
        hint={isStored && 'Empty: the present key stays'}
      />
      <Text label="Name" member="name" value={draft.name} onInput={(name) => set({ name })} />
      {LISTS.map(([field, member, label, hint]) => (
        <Area
          key={field}
          label={label}
          member={member}
          code
          rows={2}
          value={draft[field]}
          onInput={(text) => set({ [field]: text })}
          hint={hint}
        />
      ))}
      <Choice
        label="Data retention of the account"
        member="declared_zdr"
        value={draft.zdr}
        options={RETENTION}
        onChange={(zdr) => set({ zdr })}
      />
      <Check
        label="Use it only after the gateway's own credentials failed"
        checked={draft.fallback}
        onChange={(fallback) => set({ fallback })}
      />
      <Check
        label="Never use the gateway's own credentials for its models"
        checked={draft.required}
        onChange={(required) => set({ required })}
      />
      <Check
        label="Never use the gateway's own credentials for this provider"
        checked={draft.only}
        onChange={(only) => set({ only })}
      />
    </>
  );
}

/** @param item as it was; absent: a new key */
function bodyOf({ name, models, keys, users, fallback, required, only, zdr }: Draft, item?: ApiByokKey) {
  return {
    ...{ name: name || null, is_fallback: fallback, is_required: required, is_byok_only: only },
    allowed_models: linesOrNull(models, item?.allowed_models),
    allowed_api_key_hashes: linesOrNull(keys, item?.allowed_api_key_hashes),
    allowed_user_ids: linesOrNull(users, item?.allowed_user_ids),
    declared_zdr: zdr === '' ? null : zdr === 'true',
  };
}

export function RemoveKey({ item, onClose }: { item: ApiByokKey; onClose(): void }) {
  const change = useChange(() => api('DELETE /byok/{id}', { path: { id: item.id } }), ['GET /byok'], onClose);
  return (
    <Confirm
      title={`Delete the credential of ${item.provider}?`}
      action="Delete the credential"
      change={change}
      onClose={onClose}
    >
      <p>
        The gateway forgets {item.label}, which cannot be undone. Requests then use the gateway's own credentials, or
        are refused if there are none.
      </p>
    </Confirm>
  );
}
