/** The operations on presets. Requests in the three formats make their versions. */
import { type Caller, chosenWorkspace, WORKSPACES_TOPIC } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField, notFound, orNotFound } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { JsonDocument } from '../base/json.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { SERVED_FORMATS } from '../formats/index.ts';
import { ANY_KEY, MANAGEMENT } from '../http/access-rule.ts';
import { DeletedEnvelope, listReply, ok, pageOf } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { contentOf, type PresetContent } from './config.ts';
import { presetReply, presetResource, versionReply, withVersion } from './preset.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';

export interface PresetParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  /** Throws GatewayError 400 with the path for plugins that a request with these settings could not use. */
  checkPlugins(document: JsonDocument): unknown;
}

/** Per workspace: all of them are in memory while its keys are in use. */
const MAX_PRESETS = 200;
/** Per preset. The oldest ones are deleted. */
const MAX_VERSIONS = 200;
const MAX_BODY_BYTES = 8 * 1024 * 1024;
const SLUG = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$/;

const TAG = 'Presets';

/** Reads `parts` only while handling a request. */
export function presetOperations(parts: PresetParts): Operation<Caller>[] {
  return [
    listPresets(parts),
    getPreset(parts),
    listVersions(parts),
    getVersion(parts),
    ...SERVED_FORMATS.flatMap((format) => (format.operation.inPath ? [] : createFrom(format, parts))),
    deletePreset(parts),
  ];
}

function listPresets(parts: PresetParts): Operation<Caller> {
  return {
    id: 'listPresets',
    method: 'GET',
    path: '/presets',
    summary: 'List the presets of a workspace, last changed first',
    tag: TAG,
    access: ANY_KEY,
    query: schema.WorkspacePageQuery,
    replies: ok('One page of presets', schema.PresetList),
    async handle(exchange) {
      const { database } = parts;
      const workspaceId = await workspaceOf(database, exchange);
      const { presets, total } = await store.listPresets(database, workspaceId, pageOf(exchange.query));
      exchange.reply(200, listReply(presets.map(presetReply), total));
    },
  };
}

function getPreset(parts: PresetParts): Operation<Caller> {
  return {
    id: 'getPreset',
    method: 'GET',
    path: '/presets/{slug}',
    summary: 'Get a preset with the version that requests use',
    tag: TAG,
    access: ANY_KEY,
    params: schema.PresetParams,
    query: schema.WorkspaceQuery,
    replies: ok('The preset', schema.PresetEnvelope),
    async handle(exchange) {
      const { database } = parts;
      const preset = await existing(database, exchange);
      const version = await store.versionWithId(database, preset.designatedVersionId);
      exchange.reply(200, { data: withVersion(preset, orNotFound(version, 'preset with this slug')) });
    },
  };
}

function listVersions(parts: PresetParts): Operation<Caller> {
  return {
    id: 'listPresetVersions',
    method: 'GET',
    path: '/presets/{slug}/versions',
    summary: `List the versions of a preset, oldest first; the newest ${MAX_VERSIONS} are kept`,
    tag: TAG,
    access: ANY_KEY,
    params: schema.PresetParams,
    query: schema.WorkspacePageQuery,
    replies: ok('One page of versions', schema.VersionList),
    async handle(exchange) {
      const { database } = parts;
      const { id } = await existing(database, exchange);
      const { versions, total } = await store.listVersions(database, id, pageOf(exchange.query));
      exchange.reply(200, listReply(versions.map(versionReply), total));
    },
  };
}

function getVersion(parts: PresetParts): Operation<Caller> {
  return {
    id: 'getPresetVersion',
    method: 'GET',
    path: '/presets/{slug}/versions/{version}',
    summary: 'Get one version of a preset by its number',
    tag: TAG,
    access: ANY_KEY,
    params: schema.VersionParams,
    query: schema.WorkspaceQuery,
    replies: ok('The version', schema.VersionEnvelope),
    async handle(exchange) {
      const { database } = parts;
      const { id } = await existing(database, exchange);
      const number = /^[1-9]\d{0,8}$/.test(exchange.params['version']!)
        ? Number(exchange.params['version'])
        : undefined;
      const version = number === undefined ? undefined : await store.findVersion(database, id, number);
      exchange.reply(200, { data: versionReply(orNotFound(version, 'version of this preset with this number')) });
    },
  };
}

const IDS: Readonly<Record<string, string>> = { chat: 'ChatCompletions', messages: 'Messages', responses: 'Responses' };

function createFrom(format: ServedFormat, parts: PresetParts): Operation<Caller> {
  return {
    id: `createPresets${IDS[format.id]}`,
    method: 'POST',
    path: `/presets/{slug}${format.operation.path}`,
    summary: `Create a preset, or its next version, from a request of \`${format.operation.path}\`, which is not sent`,
    tag: TAG,
    access: ANY_KEY,
    params: schema.PresetParams,
    query: schema.WorkspaceQuery,
    body: { schema: schema.settingsSchema(format), maxBytes: MAX_BODY_BYTES },
    replies: ok('The preset; requests use the new version in every process', schema.PresetEnvelope),
    errors: [409],
    async handle(exchange) {
      const { caller } = exchange;
      if (caller.internId !== null)
        throw new GatewayError('permission_denied', 'the key of an intern cannot create presets');
      if (!SLUG.test(exchange.params['slug']!)) {
        throw invalidField(
          'slug',
          'must be 1 to 100 characters of a-z, A-Z, 0-9, ., _, ~ and -, and begin with none of the last four',
        );
      }
      const content = contentOf(format, exchange.document!);
      parts.checkPlugins(exchange.document!);
      exchange.reply(200, { data: await write(exchange, { ...content, format }, parts) });
    },
  };
}

interface NewVersion extends PresetContent {
  format: ServedFormat;
}

function write(exchange: Exchange<Caller>, { format, ...content }: NewVersion, parts: PresetParts) {
  const { caller, params } = exchange;
  const now = parts.clock.now();
  const createdAt = new Date(now);
  return changeAs(authorOf(exchange), parts, async (tx, changed) => {
    const workspaceId = await workspaceOf(tx, exchange);
    await holdWorkspace(tx, caller.organizationId, workspaceId);
    const earlier = await store.findPreset(tx, workspaceId, params['slug']!);
    const version = {
      ...content,
      id: uuidv7(now),
      presetId: earlier?.id ?? uuidv7(now),
      version: earlier === undefined ? 1 : await store.nextVersion(tx, earlier.id),
      format: format.id,
      creatorId: caller.userId ?? caller.organizationId,
      createdAt,
    };
    const preset = {
      ...(earlier ?? {
        id: version.presetId,
        organizationId: caller.organizationId,
        workspaceId,
        slug: params['slug']!,
        creatorUserId: caller.userId,
        createdAt,
      }),
      designatedVersionId: version.id,
      updatedAt: createdAt,
    };
    if (earlier === undefined) {
      if ((await store.countPresets(tx, workspaceId)) >= MAX_PRESETS) {
        throw new GatewayError('invalid_request', `a workspace has at most ${MAX_PRESETS} presets`, { path: 'slug' });
      }
      await store.insertPreset(tx, preset);
    }
    await store.insertVersion(tx, version, MAX_VERSIONS);
    if (earlier !== undefined) await store.designate(tx, version);
    const before = earlier && (await store.versionWithId(tx, earlier.designatedVersionId));
    await changed({
      action: earlier === undefined ? 'preset.created' : 'preset.updated',
      ...presetResource(preset),
      before: earlier && before && withVersion(earlier, before),
      after: withVersion(preset, version),
      announce: [WORKSPACES_TOPIC, workspaceId],
    });
    return withVersion(preset, version);
  });
}

function deletePreset(parts: PresetParts): Operation<Caller> {
  return {
    id: 'deletePreset',
    method: 'DELETE',
    path: '/presets/{slug}',
    summary: 'Delete a preset with all its versions',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.PresetParams,
    query: schema.WorkspaceQuery,
    replies: ok('The preset is deleted in every process', DeletedEnvelope),
    async handle(exchange) {
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspaceId = await workspaceOf(tx, exchange);
        await holdWorkspace(tx, exchange.caller.organizationId, workspaceId);
        const preset = await existing(tx, exchange);
        await store.deletePreset(tx, preset.id);
        await changed({
          action: 'preset.deleted',
          ...presetResource(preset),
          before: presetReply(preset),
          announce: [WORKSPACES_TOPIC, workspaceId],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

async function holdWorkspace(tx: Queryable, organizationId: string, workspaceId: string): Promise<void> {
  if (!(await store.renewRules(tx, organizationId, workspaceId))) throw notFound('workspace with this id');
}

async function existing(db: Queryable, exchange: Exchange<Caller>): Promise<store.StoredPreset> {
  const workspaceId = await workspaceOf(db, exchange);
  return orNotFound(await store.findPreset(db, workspaceId, exchange.params['slug']!), 'preset with this slug');
}

/** Inference keys use their own workspace, management keys the one that the query names. */
async function workspaceOf(db: Queryable, { caller, query }: Exchange<Caller>): Promise<string> {
  const named = (query as schema.WorkspaceQueryValue).workspace_id?.toLowerCase();
  if (caller.kind === 'management') return chosenWorkspace(db, caller.organizationId, named);
  if (named === undefined || named === caller.workspaceId) return caller.workspaceId;
  throw new GatewayError('permission_denied', 'workspace_id names another workspace than that of the key', {
    path: 'workspace_id',
  });
}
