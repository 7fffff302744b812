/** Creates or changes a destination. The gateway tests the connection before it saves an enabled one. */
import { useState } from 'preact/hooks';
import type { ApiDestination } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import { useAll, useChange } from '../query.ts';
import { useDifference } from '../ui/difference.ts';
import { Amount, Check, Choice, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';
import { ConfigForm, configOf, fieldsOf } from './config-form.tsx';
import { type Group, RulesForm } from './rules-form.tsx';

export const REGIONS: readonly Option[] = [
  ['global', 'Global'],
  ['europe', 'Europe'],
  ['us', 'United States'],
];
export const DETAILS = [
  ['broadcast_generation_cost', 'Cost at the provider, cache discount and use of BYOK credentials'],
  ['broadcast_generation_identity', 'Ids of the organization, workspace, key and member'],
  ['broadcast_generation_request_context', 'Request id, region, user agent, referer and title'],
] as const;

/** What decides which generations are sent and what of them. */
interface Settings {
  enabled: boolean;
  privacy_mode: boolean;
  broadcast_generation_cost: boolean;
  broadcast_generation_identity: boolean;
  broadcast_generation_request_context: boolean;
  rate: string;
  regions: readonly string[];
  /** null: all keys. */
  keys: readonly string[] | null;
  groups: readonly Group[];
}

const USUAL: Settings = {
  enabled: true,
  privacy_mode: false,
  broadcast_generation_cost: false,
  broadcast_generation_identity: false,
  broadcast_generation_request_context: false,
  rate: '1',
  regions: ['global'],
  keys: null,
  groups: [],
};

interface EditDestinationProps {
  /** Absent: a new one. */
  destination?: ApiDestination;
  /** Of a new one; empty for the default workspace. */
  workspace?: string;
  onClose(): void;
  onSaved(destination: ApiDestination): void;
}

export function EditDestination({ destination, workspace = '', onClose, onSaved }: EditDestinationProps) {
  const [name, setName] = useState(destination?.name ?? '');
  const [type, setType] = useState(destination?.type ?? 'otel-collector');
  const [place, setPlace] = useState(destination?.workspace_id ?? workspace);
  const [fields, setFields] = useState(fieldsOf(type, destination?.config));
  const [settings, setSettings] = useState(destination === undefined ? USUAL : settingsOf(destination));
  const body = { name, config: configOf(type, fields, destination?.config), ...settingsBody(settings) };
  const changed = useDifference(body);
  const change = useChange(
    () =>
      destination === undefined
        ? api('POST /observability/destinations', { body: { ...body, type, ...(place && { workspace_id: place }) } })
        : api('PATCH /observability/destinations/{id}', { path: { id: destination.id }, body: changed }),
    ['GET /observability/destinations', 'GET /observability/destinations/{id}'],
    ({ data }) => onSaved(data),
  );
  const set = (changes: Partial<Settings>) => setSettings({ ...settings, ...changes });
  return (
    <Dialog title={destination === undefined ? 'Add a destination' : `Edit ${destination.name}`} wide onClose={onClose}>
      <Form submit={destination === undefined ? 'Add' : 'Save'} change={change} onCancel={onClose}>
        <div class="form-row">
          <Text label="Name" member="name" required maxLength={255} value={name} onInput={setName} />
          {destination === undefined && (
            <>
              <Choice
                label="Type"
                member="type"
                value={type}
                options={Object.keys(DESTINATION_TYPES).map((each) => [each, each])}
                onChange={(next) => {
                  setType(next);
                  setFields(fieldsOf(next));
                }}
                hint={DESTINATION_TYPES[type]?.description}
              />
              <WorkspaceChoice value={place} onChange={setPlace} />
            </>
          )}
        </div>
        <h3>Connection</h3>
        <ConfigForm type={type} fields={fields} config={destination?.config} onFields={setFields} />
        <h3>Which generations</h3>
        <Selection settings={settings} workspace={place} set={set} />
        <h3>Contents of the records</h3>
        <div class="checks">
          <Check
            label="Privacy: neither inputs, outputs nor error messages"
            checked={settings.privacy_mode}
            onChange={(privacy_mode) => set({ privacy_mode })}
          />
          {DETAILS.map(([member, label]) => (
            <Check
              key={member}
              label={label}
              checked={settings[member]}
              onChange={(checked) => set({ [member]: checked })}
            />
          ))}
        </div>
        <Check
          label="Enabled: the connection is tested now, and generations are sent"
          checked={settings.enabled}
          onChange={(enabled) => set({ enabled })}
        />
      </Form>
    </Dialog>
  );
}

function settingsOf(destination: ApiDestination): Settings {
  const { enabled, privacy_mode, sampling_rate, regions, api_key_hashes, filter_rules } = destination;
  const details = Object.fromEntries(DETAILS.map(([member]) => [member, destination[member]]));
  return {
    ...USUAL,
    ...details,
    ...{ enabled, privacy_mode, regions },
    rate: String(sampling_rate),
    keys: api_key_hashes,
    groups: filter_rules?.groups ?? [],
  };
}

function settingsBody({ rate, keys, groups, regions, ...flags }: Settings) {
  const body: Body<'PATCH /observability/destinations/{id}'> = {
    ...flags,
    sampling_rate: Number(rate),
    regions: [...regions] as 'global'[],
    api_key_hashes: keys && [...keys],
    filter_rules: groups.length === 0 ? null : { groups: [...groups] },
  };
  return body;
}

interface SelectionProps {
  settings: Settings;
  /** Empty: the default one. */
  workspace: string;
  set(changes: Partial<Settings>): void;
}

function Selection({ settings: { rate, regions, keys, groups }, workspace, set }: SelectionProps) {
  const toggled = (list: readonly string[], item: string) =>
    list.includes(item) ? list.filter((each) => each !== item) : [...list, item];
  return (
    <>
      <div class="form-row">
        <Amount
          label="Share of sessions, up to 1"
          member="sampling_rate"
          required
          value={rate}
          onInput={(next) => set({ rate: next })}
          hint="0.1: a tenth; a session is sent whole or not at all"
        />
        <fieldset class="checks">
          <legend>Served in</legend>
          {REGIONS.map(([region, label]) => (
            <Check
              key={region}
              label={label}
              checked={regions.includes(region)}
              onChange={() => set({ regions: toggled(regions, region) })}
            />
          ))}
        </fieldset>
        <fieldset class="checks">
          <legend>Keys</legend>
          <Check
            label="All keys of the workspace"
            checked={keys === null}
            onChange={(all) => set({ keys: all ? null : [] })}
          />
          {keys !== null && (
            <KeyChecks workspace={workspace} chosen={keys} onToggle={(hash) => set({ keys: toggled(keys, hash) })} />
          )}
        </fieldset>
      </div>
      <RulesForm groups={groups} onGroups={(next) => set({ groups: next })} />
    </>
  );
}

interface KeyChecksProps {
  workspace: string;
  chosen: readonly string[];
  onToggle(hash: string): void;
}

const HASH_SHOWN = 12;

/** The keys of the workspace; a chosen one that is not among them is shown by its hash. */
function KeyChecks({ workspace, chosen, onToggle }: KeyChecksProps) {
  const { data } = useAll('GET /keys', { query: inWorkspace(workspace) });
  const listed = (data?.rows ?? []).map(({ hash, name }) => [hash, name] as const);
  const others = chosen.filter((hash) => !listed.some(([each]) => each === hash));
  return (
    <div class="checks scroll">
      {[...listed, ...others.map((hash) => [hash, hash.slice(0, HASH_SHOWN)] as const)].map(([hash, label]) => (
        <Check key={hash} label={label} checked={chosen.includes(hash)} onChange={() => onToggle(hash)} />
      ))}
    </div>
  );
}
