/** Presets: settings of requests under a name, their versions, and the version that requests use. */
import { useState } from 'preact/hooks';
import type { ApiPresetVersion, ApiPresetWithDesignatedVersion } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { FORMAT_NAMES } from '../playground/conversation.ts';
import { EditPreset } from '../presets/edit.tsx';
import { PRESET_READS, savePreset, settingsOf } from '../presets/settings.ts';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Code, Empty, Facts, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { NONE } from '../ui/format.ts';
import { Confirm } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;

export function Presets({ rest }: PageParts) {
  return rest === '' ? <PresetList /> : <PresetDetail key={rest} slug={rest} />;
}

function useWorkspace(): string {
  return useParams().params.get('workspace') ?? '';
}

function PresetList() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = useWorkspace();
  const reading = useApi('GET /presets', { query: { offset, limit: PAGE, ...inWorkspace(workspace) } });
  return (
    <Page
      title="Presets"
      about="Settings that requests of a workspace use by their name, so that they can change without a change to the application."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'preset' })}>
          Create a preset
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      <PagedList
        label="Presets, last changed first"
        reading={reading}
        rows={reading.data?.data}
        empty={
          <Empty icon="presets" title="No presets">
            <p>Create one to keep a model, a system prompt and other settings under a name.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        keyOf={({ id }) => id}
        linkOf={({ slug }) => link(`/presets/${encodeURIComponent(slug)}`, { workspace })}
        columns={[
          { head: 'Name', cell: ({ slug }) => <span class="clip">{slug}</span> },
          {
            head: 'In requests',
            minor: true,
            cell: ({ slug }) => <span class="clip mono small">{`@preset/${slug}`}</span>,
          },
          { head: 'Created', end: true, minor: true, cell: ({ created_at }) => <Time at={created_at} /> },
          { head: 'Changed', end: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
        ]}
      />
      {params.get('new') === 'preset' && (
        <EditPreset
          workspace={workspace}
          onClose={() => set({ new: undefined }, true)}
          onSaved={({ slug }) => go(link(`/presets/${encodeURIComponent(slug)}`, { workspace }), true)}
        />
      )}
    </Page>
  );
}

function PresetDetail({ slug }: { slug: string }) {
  const { params, set } = useParams();
  const workspace = useWorkspace();
  const number = params.get('version') ?? '';
  const call = { path: { slug }, query: inWorkspace(workspace) };
  const { data, error, refetch } = useApi('GET /presets/{slug}', call);
  const older = useApi(
    'GET /presets/{slug}/versions/{version}',
    { ...call, path: { slug, version: number } },
    { enabled: number !== '' },
  );
  const [action, setAction] = useState<'edit' | 'delete'>();
  const close = () => setAction(undefined);
  const preset = data?.data;
  const current = preset?.designated_version ?? undefined;
  const shown = number === '' ? current : older.data?.data;
  return (
    <Page
      title={slug}
      about={<span class="mono">{`@preset/${slug}`}</span>}
      actions={
        shown !== undefined && (
          <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')}>
            <a class="button plain" href={link('/playground', { model: `@preset/${slug}` })}>
              Use in the playground
            </a>
          </ItemActions>
        )
      }
    >
      <Problem error={error ?? older.error} retry={() => void refetch()} />
      {preset !== undefined && shown !== undefined ? (
        <div class="stack">
          <Version version={shown} preset={preset} workspace={workspace} onUsed={() => set({ version: undefined })} />
          <Versions preset={preset} shown={shown.version} workspace={workspace} />
        </div>
      ) : (
        (error ?? older.error) === null && <Waiting lines={8} />
      )}
      {action === 'edit' && shown !== undefined && (
        <EditPreset
          slug={slug}
          settings={settingsOf(shown)}
          workspace={workspace}
          onClose={close}
          onSaved={() => {
            close();
            set({ version: undefined });
          }}
        />
      )}
      {action === 'delete' && preset !== undefined && (
        <DeletePreset preset={preset} workspace={workspace} onClose={close} />
      )}
    </Page>
  );
}

interface VersionProps {
  version: ApiPresetVersion;
  preset: ApiPresetWithDesignatedVersion;
  workspace: string;
  onUsed(): void;
}

function Version({ version, preset, workspace, onUsed }: VersionProps) {
  const isUsed = version.id === preset.designated_version_id;
  const { model, temperature, ...more } = version.config;
  const change = useChange(() => savePreset(preset.slug, workspace, settingsOf(version)), PRESET_READS, onUsed);
  return (
    <Card
      title={`Version ${version.version}`}
      actions={
        isUsed ? (
          <Badge tone="good">In use</Badge>
        ) : (
          <Button busy={change.isPending} onClick={() => change.mutate(undefined)}>
            Use these settings again
          </Button>
        )
      }
    >
      <div class="stack">
        <Problem error={change.error} />
        <Facts
          rows={[
            ['Model', <span key="model" class="mono">{`${model ?? 'as the request says'}`}</span>],
            ['Temperature', temperature === undefined ? NONE : String(temperature)],
            ['Format', FORMAT_NAMES.find(([format]) => format === version.format)?.[1] ?? version.format],
            ['Made', <Time key="made" at={version.created_at} exact />],
            [
              'By',
              <span key="by" class="mono small">
                {version.creator_id}
              </span>,
            ],
          ]}
        />
        {version.system_prompt !== null && (
          <>
            <h3>System prompt</h3>
            <Code label="system prompt" text={version.system_prompt} />
          </>
        )}
        {Object.keys(more).length > 0 && (
          <>
            <h3>More settings</h3>
            <Code label="settings" text={JSON.stringify(more, null, 2)} />
          </>
        )}
      </div>
    </Card>
  );
}

interface VersionsProps {
  preset: ApiPresetWithDesignatedVersion;
  /** The number of the version that the page shows. */
  shown: number;
  workspace: string;
}

function Versions({ preset: { slug, designated_version_id }, shown, workspace }: VersionsProps) {
  const offset = useOffset();
  const reading = useApi('GET /presets/{slug}/versions', {
    path: { slug },
    query: { offset, limit: PAGE, ...inWorkspace(workspace) },
  });
  const place = `/presets/${encodeURIComponent(slug)}`;
  return (
    <PagedList
      title="Versions"
      label="Versions, oldest first"
      reading={reading}
      rows={reading.data?.data}
      empty={null}
      pages={{ size: PAGE, total: reading.data?.total_count }}
      keyOf={({ id }) => id}
      linkOf={({ version, id }) =>
        link(place, { workspace, offset: offset || undefined, version: id === designated_version_id ? '' : version })
      }
      columns={[
        { head: 'Version', cell: ({ version }) => version },
        { head: 'Model', cell: ({ config }) => <span class="clip mono small">{String(config['model'] ?? NONE)}</span> },
        {
          head: 'State',
          cell: ({ id, version }) => (
            <span class="badges">
              {id === designated_version_id && <Badge tone="good">In use</Badge>}
              {version === shown && <Badge>Shown</Badge>}
            </span>
          ),
        },
        { head: 'Made', end: true, minor: true, cell: ({ created_at }) => <Time at={created_at} /> },
      ]}
    />
  );
}

interface DeletePresetProps {
  preset: ApiPresetWithDesignatedVersion;
  workspace: string;
  onClose(): void;
}

function DeletePreset({ preset: { slug }, workspace, onClose }: DeletePresetProps) {
  const change = useChange(
    () => api('DELETE /presets/{slug}', { path: { slug }, query: inWorkspace(workspace) }),
    ['GET /presets'],
    () => go(link('/presets', { workspace })),
  );
  return (
    <Confirm title={`Delete ${slug}?`} action="Delete the preset" word={slug} change={change} onClose={onClose}>
      <p>This cannot be undone.</p>
      <ul>
        <li>All its versions are lost.</li>
        <li>
          Requests that name <code>{`@preset/${slug}`}</code> are refused from then on.
        </li>
      </ul>
    </Confirm>
  );
}
