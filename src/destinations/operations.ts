/** The operations on destinations, `/observability/destinations`. */
import { isDeepStrictEqual } from 'node:util';
import { type Caller, chosenWorkspace, namedKeys } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField, orNotFound } from '../base/errors.ts';
import { isUuid, uuidv7 } from '../base/ids.ts';
import { shownName } from '../base/storable.ts';
import { EgressError } from '../egress/index.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { idOf, listReply, ok, pageOf } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { errorCode } from '../storage/unavailable.ts';
import { fullConfig, type StoredConfig, storedConfig } from './config.ts';
import { probe, type SendParts } from './delivery/send.ts';
import {
  changedSettings,
  destinationReply,
  destinationResource,
  destinationState,
  USUAL_SETTINGS,
} from './destination.ts';
import { checkRules } from './filters.ts';
import { kindOf, TYPES } from './kinds/index.ts';
import type { DestinationKind } from './kinds/kind.ts';
import * as schema from './schema.ts';
import { sealSecrets, secretsOf, TOPIC } from './sealed.ts';
import * as store from './store.ts';

export interface DestinationParts extends SendParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
}

/** Per organization; every process keeps all of them in memory. */
const MAX_DESTINATIONS = 200;
const TAG = 'Observability';
const UNIQUE_VIOLATION = '23505';

/** Reads `parts` only while handling a request. */
export function destinationOperations(parts: DestinationParts): Operation<Caller>[] {
  return [
    listDestinations(parts),
    createDestination(parts),
    getDestination(parts),
    updateDestination(parts),
    deleteDestination(parts),
    testDestination(parts),
  ];
}

function listDestinations(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'listObservabilityDestinations',
    method: 'GET',
    path: '/observability/destinations',
    summary: 'List the destinations of a workspace, oldest first',
    tag: TAG,
    access: MANAGEMENT,
    query: schema.ListDestinationsQuerySchema,
    replies: ok(
      'One page of destinations, of the default workspace unless `workspace_id` is given',
      schema.DestinationListEnvelope,
    ),
    async handle(exchange) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const query = exchange.query as schema.ListDestinationsQuery;
      const workspaceId = await chosenWorkspace(database, organizationId, query.workspace_id?.toLowerCase());
      const page = { organizationId, workspaceId, ...pageOf(query) };
      const { destinations, total } = await store.listDestinations(database, page);
      exchange.reply(200, listReply(destinations.map(destinationReply), total));
    },
  };
}

function createDestination(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'createObservabilityDestination',
    method: 'POST',
    path: '/observability/destinations',
    summary: 'Add a destination; unless it is disabled, its connection is tested first',
    tag: TAG,
    access: MANAGEMENT,
    body: { schema: schema.CreateDestinationSchema },
    replies: { 201: { description: 'The destination, secrets masked', schema: schema.DestinationEnvelope } },
    errors: [409],
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.CreateDestinationBody;
      const kind = kindNamed(body.type);
      const config = checkedConfig(parts, kind, storedConfig(kind, body.config));
      const settings = changedSettings({ ...USUAL_SETTINGS, name: shownName(body.name) }, body, undefined);
      await checkRules(settings.filterRules);
      if (settings.enabled) await testConnection(parts, kind, config);
      const createdAt = new Date(parts.clock.now());
      const id = uuidv7(createdAt.getTime());
      const sealed = await sealSecrets(parts.sealing, id, config.secrets);
      const created = await distinctlyNamed(() =>
        changeAs(authorOf(exchange), parts, async (tx, changed) => {
          if ((await store.countDestinations(tx, organizationId)) >= MAX_DESTINATIONS) {
            throw new GatewayError('invalid_request', `an organization has at most ${MAX_DESTINATIONS} destinations`);
          }
          const workspaceId = await chosenWorkspace(tx, organizationId, body.workspace_id?.toLowerCase(), true);
          const allowedKeyIds = (await keyIdsOf(tx, organizationId, body)) ?? null;
          await store.insertDestination(tx, {
            ...{ ...settings, allowedKeyIds, id, organizationId, workspaceId, type: kind.type, sealed },
            ...{ config: config.shown, createdAt, updatedAt: createdAt },
          });
          const destination = await existing(tx, organizationId, id);
          await changed({
            action: 'destination.created',
            ...destinationResource(destination),
            after: destinationState(destination),
            announce: [TOPIC, id],
          });
          return destination;
        }),
      );
      exchange.reply(201, { data: destinationReply(created) });
    },
  };
}

function getDestination(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'getObservabilityDestination',
    method: 'GET',
    path: '/observability/destinations/{id}',
    summary: 'Get a destination and the state of its deliveries',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.DestinationParamsSchema,
    replies: ok('The destination, secrets masked', schema.DestinationEnvelope),
    async handle(exchange) {
      const destination = await existing(parts.database, exchange.caller.organizationId, idOf(exchange));
      exchange.reply(200, { data: destinationReply(destination) });
    },
  };
}

function updateDestination(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'updateObservabilityDestination',
    method: 'PATCH',
    path: '/observability/destinations/{id}',
    summary: 'Update a destination; a changed config, and one that is enabled, is tested first',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.DestinationParamsSchema,
    body: { schema: schema.UpdateDestinationSchema },
    replies: ok('The updated destination. The change is in effect in every process', schema.DestinationEnvelope),
    errors: [409],
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const id = idOf(exchange);
      const body = exchange.body as schema.UpdateDestinationBody;
      const known = await existing(parts.database, organizationId, id);
      const config = await changedConfig(parts, known, body);
      const sealed = config && (await sealSecrets(parts.sealing, id, config.secrets));
      const updated = await distinctlyNamed(() =>
        changeAs(authorOf(exchange), parts, async (tx, changed) => {
          const before = await existing(tx, organizationId, id, true);
          if (config !== undefined && !before.sealed.equals(known.sealed)) throw changedMeanwhile();
          const settings = changedSettings(before, body, await keyIdsOf(tx, organizationId, body));
          const next = { ...before, ...settings, ...(config && { config: config.shown, sealed: sealed! }) };
          if (config === undefined && isDeepStrictEqual(next, { ...before })) return before;
          await store.updateDestination(tx, id, { ...next, updatedAt: new Date(parts.clock.now()) });
          const destination = await existing(tx, organizationId, id);
          await changed({
            action: 'destination.updated',
            ...destinationResource(destination),
            before: destinationState(before),
            after: destinationState(destination),
            announce: [TOPIC, id],
          });
          return destination;
        }),
      );
      exchange.reply(200, { data: destinationReply(updated) });
    },
  };
}

function deleteDestination(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'deleteObservabilityDestination',
    method: 'DELETE',
    path: '/observability/destinations/{id}',
    summary: 'Delete a destination; what waits for it is not delivered',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.DestinationParamsSchema,
    replies: ok('The destination is deleted and gets nothing more', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const destination = await existing(tx, organizationId, idOf(exchange), true);
        await store.deleteDestination(tx, destination.id);
        await changed({
          action: 'destination.deleted',
          ...destinationResource(destination),
          before: destinationState(destination),
          announce: [TOPIC, destination.id],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

function testDestination(parts: DestinationParts): Operation<Caller> {
  return {
    id: 'testObservabilityDestination',
    method: 'POST',
    path: '/observability/destinations/{id}/test',
    summary: 'Send a test event to a destination, enabled or not; nothing is stored',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.DestinationParamsSchema,
    replies: ok('Whether the destination accepted it', schema.TestedEnvelope),
    async handle(exchange) {
      const known = await existing(parts.database, exchange.caller.organizationId, idOf(exchange));
      const kind = kindNamed(known.type);
      const stored = checkedConfig(parts, kind, {
        shown: known.config,
        secrets: await secretsOf(parts.sealing, known),
      });
      const error = await probe(parts, { kind, config: fullConfig(stored) }, parts.clock.now());
      exchange.reply(200, { data: { accepted: error === undefined, error: error ?? null } });
    },
  };
}

async function existing(db: Queryable, organizationId: string, id: string, hold = false) {
  const found = isUuid(id) ? await store.findDestination(db, organizationId, id, hold) : undefined;
  return orNotFound(found, 'destination with this id');
}

function kindNamed(type: string): DestinationKind {
  const kind = kindOf(type);
  if (kind !== undefined) return kind;
  throw invalidField('type', `must be one of ${TYPES.join(', ')}`);
}

/** The config after an update, tested; undefined if it stays and needs no test. */
async function changedConfig(
  parts: DestinationParts,
  known: store.ShownDestination,
  body: schema.UpdateDestinationBody,
): Promise<StoredConfig | undefined> {
  await checkRules(body.filter_rules ?? null);
  const isEnabled = body.enabled ?? known.enabled;
  const isStarted = isEnabled && !known.enabled;
  if (body.config === undefined && !isStarted) return undefined;
  const kind = kindNamed(known.type);
  const before = { shown: known.config, secrets: await secretsOf(parts.sealing, known) };
  const config = checkedConfig(parts, kind, storedConfig(kind, body.config ?? {}, before));
  const isSame = isDeepStrictEqual(config, before);
  if (isEnabled && (isStarted || !isSame)) await testConnection(parts, kind, config);
  return isSame ? undefined : config;
}

function changedMeanwhile(): GatewayError {
  return new GatewayError('invalid_request', 'Another request changed this destination at the same time. Retry.', {
    status: 409,
  });
}

/** Checks the addresses, without resolving their names. */
function checkedConfig({ egress }: DestinationParts, kind: DestinationKind, config: StoredConfig): StoredConfig {
  for (const [name, field] of Object.entries(kind.fields)) {
    const value = config.shown[name];
    if (field.is !== 'url' || typeof value !== 'string') continue;
    try {
      egress.check({ url: value, tlsOnly: true });
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      throw invalidField(`config.${name}`, error.message);
    }
  }
  return config;
}

async function testConnection(parts: DestinationParts, kind: DestinationKind, stored: StoredConfig): Promise<void> {
  const problem = await probe(parts, { kind, config: fullConfig(stored) }, parts.clock.now());
  if (problem !== undefined) throw invalidField('config', `did not pass the connection test: ${problem}`);
}

/** Ids of the keys that the body's hashes name; undefined if it has no such list. */
async function keyIdsOf(
  tx: Queryable,
  organizationId: string,
  { api_key_hashes: hashes }: schema.UpdateDestinationBody,
): Promise<readonly string[] | null | undefined> {
  if (hashes == null) return hashes;
  const known = await namedKeys(tx, organizationId, hashes);
  return hashes.map((hash, index) => {
    const [id] = known.get(hash) ?? [];
    if (id === undefined) throw invalidField(`api_key_hashes[${index}]`, 'is not a key of the organization');
    return id;
  });
}

/** @throws GatewayError 409 if the name is taken */
async function distinctlyNamed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (errorCode(error) !== UNIQUE_VIOLATION) throw error;
    throw new GatewayError('invalid_request', 'name: is taken by another destination of the workspace', {
      status: 409,
      path: 'name',
    });
  }
}
