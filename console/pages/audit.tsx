/** The audit log: who changed what, before and after. */
import { useState } from 'preact/hooks';
import type { ApiAuditEntry } from '../api.gen.ts';
import type { PageParts } from '../frame.tsx';
import { useApi } from '../query.ts';
import { link, useParams } from '../route.ts';
import { Badge, Code, Empty, Facts, Page, Time } from '../ui/basics.tsx';
import { Filter } from '../ui/filter.tsx';
import { NONE } from '../ui/format.ts';
import { Choice, Dialog, type Option } from '../ui/forms.tsx';
import { ActionInRow } from '../ui/item-actions.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';

const RESOURCES: readonly Option[] = [
  ['', 'Everything'],
  ...[
    'key',
    'workspace',
    'guardrail',
    'byok_key',
    'file',
    'batch',
    'vault_secret',
    'scim_user',
    'scim_group',
    'console_session',
    'destination',
    'intern',
    'configuration',
  ].map((each) => [each, each.replaceAll('_', ' ')] as const),
];
const ACTORS: readonly Option[] = [
  ['', 'Anybody'],
  ['key', 'A key'],
  ['scim', 'The identity provider'],
  ['operator', 'The operator'],
  ['sign_in', 'A sign-in'],
  ['gateway', 'The gateway'],
];

export function Audit(_: PageParts) {
  const { params, set } = useParams();
  const [shown, setShown] = useState<ApiAuditEntry>();
  const value = (name: string) => params.get(name) ?? '';
  const cursor = useCursor();
  const given = (name: string) => (value(name) === '' ? {} : { [name]: value(name) });
  const reading = useApi('GET /audit', {
    query: {
      ...given('resource_type'),
      ...given('actor_type'),
      ...given('action'),
      ...given('resource_id'),
      ...(cursor && { cursor }),
    } as object,
  });
  return (
    <Page title="Audit log" about="Every change of the control plane. Entries cannot be altered.">
      <search class="filters">
        <Choice
          label="What"
          value={value('resource_type')}
          options={RESOURCES}
          onChange={(chosen) => set({ resource_type: chosen }, true)}
        />
        <Choice
          label="By"
          value={value('actor_type')}
          options={ACTORS}
          onChange={(chosen) => set({ actor_type: chosen }, true)}
        />
        <Filter
          label="Action"
          value={value('action')}
          onValue={(action) => set({ action }, true)}
          placeholder="key.created"
        />
        <Filter
          label="Id of the resource"
          value={value('resource_id')}
          onValue={(id) => set({ resource_id: id }, true)}
        />
      </search>
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        lines={8}
        empty={
          <Empty icon="audit" title="No entry fits">
            <a href={link('/audit')}>Remove the filters</a>
          </Empty>
        }
        pages={{ next: reading.data?.next_cursor }}
        label="Audit log"
        keyOf={({ id }) => id}
        columns={[
          { head: 'Time', cell: (entry) => <Time at={entry.created_at} exact /> },
          { head: 'Action', cell: (entry) => <Badge>{entry.action}</Badge> },
          { head: 'What', minor: true, cell: (entry) => <span class="clip">{nameOf(entry)}</span> },
          {
            head: 'By',
            minor: true,
            cell: (entry) => <span class="mono small">{entry.actor.key_label ?? entry.actor.type}</span>,
          },
          {
            head: 'Details',
            end: true,
            cell: (entry) => (
              <ActionInRow name={`${entry.action} of ${nameOf(entry)}`} onClick={() => setShown(entry)}>
                Show
              </ActionInRow>
            ),
          },
        ]}
      />
      {shown !== undefined && <EntryDialog entry={shown} onClose={() => setShown(undefined)} />}
    </Page>
  );
}

function nameOf({ after, before, resource_id }: ApiAuditEntry): string {
  const name = after?.['name'] ?? before?.['name'];
  return typeof name === 'string' ? name : resource_id;
}

function EntryDialog({ entry, onClose }: { entry: ApiAuditEntry; onClose(): void }) {
  return (
    <Dialog title={entry.action} wide onClose={onClose}>
      <div class="stack">
        <Facts
          rows={[
            ['Time', <Time key="time" at={entry.created_at} exact />],
            [
              'Resource',
              <span key="id" class="mono small">
                {entry.resource_id}
              </span>,
            ],
            ['By', entry.actor.key_label ?? entry.actor.type],
            ['Member', entry.actor.user_id ?? NONE],
            ['From', entry.source_address ?? NONE],
            [
              'Request',
              <span key="request" class="mono small">
                {entry.request_id ?? NONE}
              </span>,
            ],
          ]}
        />
        {entry.before !== null && <Code label="before" text={`Before\n${JSON.stringify(entry.before, null, 2)}`} />}
        {entry.after !== null && <Code label="after" text={`After\n${JSON.stringify(entry.after, null, 2)}`} />}
      </div>
    </Dialog>
  );
}
