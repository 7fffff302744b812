/** The dialogs that create and change an inference key. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiKey } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import { useAll, useChange } from '../query.ts';
import { useDifference } from '../ui/difference.ts';
import { Amount, Check, Choice, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { RateFields, type RateTexts, rateLimits, rateTexts } from '../ui/rate-limits.tsx';
import { WorkspaceChoice } from '../ui/workspace-choice.tsx';

export const RESETS: readonly Option[] = [
  ['', 'Never'],
  ['daily', 'Daily'],
  ['weekly', 'Weekly'],
  ['monthly', 'Monthly'],
];

interface KeyFields {
  name: string;
  limit: string;
  reset: string;
  byok: boolean;
  rates: RateTexts;
}

const NO_FIELDS: KeyFields = { name: '', limit: '', reset: '', byok: false, rates: {} };

function termsOf({ name, limit, reset, byok, rates }: KeyFields) {
  return {
    name,
    limit: limit === '' ? null : Number(limit),
    limit_reset: (reset || null) as 'daily' | 'weekly' | 'monthly' | null,
    include_byok_in_limit: byok,
    rate_limits: rateLimits(rates),
  };
}

function KeyForm({ fields, onFields }: { fields: KeyFields; onFields(fields: KeyFields): void }) {
  const set = (changes: Partial<KeyFields>) => onFields({ ...fields, ...changes });
  return (
    <>
      <Text label="Name" member="name" required maxLength={200} value={fields.name} onInput={(name) => set({ name })} />
      <div class="form-row">
        <Amount
          label="Limit in USD"
          member="limit"
          value={fields.limit}
          onInput={(limit) => set({ limit })}
          hint="Empty: no limit"
        />
        <Choice
          label="Limit resets"
          member="limit_reset"
          value={fields.reset}
          options={RESETS}
          onChange={(reset) => set({ reset })}
        />
      </div>
      <RateFields texts={fields.rates} onTexts={(rates) => set({ rates })} />
      <Check
        label="The limit also counts spend on BYOK credentials"
        checked={fields.byok}
        onChange={(byok) => set({ byok })}
      />
    </>
  );
}

interface CreateKeyProps {
  workspace: string;
  onClose(): void;
  /** Shows the secret of the new key. */
  shown(secret: string): ComponentChildren;
}

export function CreateKey({ workspace, onClose, shown }: CreateKeyProps) {
  const [fields, setFields] = useState(NO_FIELDS);
  const [place, setPlace] = useState(workspace);
  const [expires, setExpires] = useState('');
  const [creator, setCreator] = useState('');
  const [user, setUser] = useState('');
  const [secret, setSecret] = useState('');
  const members = useAll('GET /organization/members');
  const body: Body<'POST /keys'> = {
    ...termsOf(fields),
    ...(place !== '' && { workspace_id: place }),
    ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
    ...(creator !== '' && { creator_user_id: creator }),
    ...((user !== '' || secret !== '') && { external: { user, ...(secret !== '' && { api_key: secret }) } }),
  };
  const change = useChange(() => api('POST /keys', { body }), ['GET /keys']);
  if (change.data !== undefined) return shown(change.data.key);
  const creators = (members.data?.rows ?? []).map(({ id, email }) => [id, email] as const);
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <Form submit="Create" change={change} onCancel={onClose}>
        <KeyForm fields={fields} onFields={setFields} />
        <div class="form-row">
          <WorkspaceChoice value={place} onChange={setPlace} />
          <Text label="Expires" member="expires_at" type="datetime-local" value={expires} onInput={setExpires} />
        </div>
        <div class="form-row">
          <Choice
            label="Creator"
            member="creator_user_id"
            value={creator}
            options={[['', 'Same as the management key'], ...creators]}
            onChange={setCreator}
            hint="If this member leaves, the key is refused"
          />
          <Text
            label="Partner's end user"
            member="external.user"
            maxLength={256}
            value={user}
            onInput={setUser}
            hint="Empty: none"
          />
          <Text
            label="Partner secret"
            member="external.api_key"
            type="password"
            value={secret}
            onInput={setSecret}
            hint="Works as the key, too"
          />
        </div>
      </Form>
    </Dialog>
  );
}

export function EditKey({ item, onClose }: { item: ApiKey; onClose(): void }) {
  const [fields, setFields] = useState<KeyFields>({
    name: item.name,
    limit: item.limit === null ? '' : String(item.limit),
    reset: item.limit_reset ?? '',
    byok: item.include_byok_in_limit,
    rates: rateTexts(item.rate_limits),
  });
  const body = useDifference(termsOf(fields));
  const change = useChange(
    () => api('PATCH /keys/{hash}', { path: { hash: item.hash }, body }),
    ['GET /keys', 'GET /keys/{hash}'],
    onClose,
  );
  return (
    <Dialog title={`Edit ${item.name}`} onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <KeyForm fields={fields} onFields={setFields} />
      </Form>
    </Dialog>
  );
}
