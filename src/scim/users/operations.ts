/** `/scim/v2/Users`. */
import type { Caller } from '../../access/index.ts';
import { authorOf } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { USER } from '../protocol/attributes.ts';
import { notFound, refusal } from '../protocol/fault.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { type Projection, project, tells } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import { lockOrganization } from '../store.ts';
import { announceMoved, changeUser, createUser, type Moved, type Provisioning, removeUser } from './provision.ts';
import * as store from './store.ts';
import { type UserFacts, userFacts, userResource } from './user.ts';

export interface ProtocolParts {
  database: Database;
  changes: Changes;
  clock: Clock;
}

const one = { 200: { description: 'The user', schema: protocol.AnyObject } };

export function userOperations(parts: ProtocolParts): Operation<Caller>[] {
  return [
    listUsers(parts),
    searchUsers(parts),
    createUserOperation(parts),
    getUser(parts),
    replaceUser(parts),
    patchUser(parts),
    deleteUser(parts),
  ];
}

function listUsers(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'listScimUsers',
    method: 'GET',
    path: '/Users',
    summary: 'Users that fulfil a filter',
    query: protocol.ListQuery,
    replies: { 200: { description: 'One page', schema: protocol.AnyObject } },
    handle: (exchange) => replyUsers(parts, exchange, protocol.readListQuery(USER, exchange.query)),
  });
}

function searchUsers(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'searchScimUsers',
    method: 'POST',
    path: '/Users/.search',
    summary: 'As the list, with the question in the body',
    body: { schema: protocol.SearchBody },
    replies: { 200: { description: 'One page', schema: protocol.AnyObject } },
    handle: (exchange) => replyUsers(parts, exchange, protocol.readSearch(USER, exchange.body)),
  });
}

async function replyUsers({ database }: ProtocolParts, exchange: Exchange<Caller>, request: protocol.ListRequest) {
  const { organizationId } = exchange.caller;
  const { condition, order, startIndex, count, projection } = request;
  const total = await store.countUsers(database, organizationId, condition);
  const question = { condition, order, offset: startIndex - 1, limit: count };
  const users = count === 0 ? [] : await store.listUsers(database, organizationId, question);
  protocol.replyList(exchange, request, total, await shown(database, users, projection, protocol.rootUrl(exchange)));
}

function createUserOperation(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'createScimUser',
    method: 'POST',
    path: '/Users',
    summary: 'Make a user, who is a member of the organization from now on',
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: { 201: { description: 'The user', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = userFacts(readResource(USER, exchange.body), true);
      const user = await written(parts, exchange, (provisioning, moved) => createUser(provisioning, facts, moved));
      await replyUser(parts, exchange, 201, user);
    },
  });
}

function getUser(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'getScimUser',
    method: 'GET',
    path: '/Users/{id}',
    summary: 'One user',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    replies: one,
    async handle(exchange) {
      await replyUser(parts, exchange, 200, await existing(parts.database, exchange));
    },
  });
}

function replaceUser(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'replaceScimUser',
    method: 'PUT',
    path: '/Users/{id}',
    summary: 'Replace all attributes of a user; without `active` that stays as it is',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: one,
    async handle(exchange) {
      const attributes = readResource(USER, exchange.body);
      await change(parts, exchange, (before) => userFacts(attributes, before.active));
    },
  });
}

function patchUser(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'patchScimUser',
    method: 'PATCH',
    path: '/Users/{id}',
    summary: 'Change attributes of a user: all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: one,
    async handle(exchange) {
      await change(parts, exchange, (before) => {
        const { attributes } = applyPatch(USER, before.userId, before.attributes, exchange.body);
        // What cannot be told apart from an order to let the user in or out is none.
        if (attributes['active'] === undefined) throw refusal('invalidValue', 'active must be true or false');
        return userFacts(attributes, before.active);
      });
    },
  });
}

function deleteUser(parts: ProtocolParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimUser',
    method: 'DELETE',
    path: '/Users/{id}',
    summary: 'Delete a user, whose keys stop working at once',
    params: protocol.IdParams,
    replies: { 204: { description: 'The user is gone' } },
    async handle(exchange) {
      const change = await parts.database.transaction(async (tx) => {
        const { provisioning, moved } = await begun(parts, tx, exchange);
        const user = await existing(tx, exchange);
        protocol.checkVersion(exchange, user.version);
        await removeUser(provisioning, user, moved);
        return announceMoved(provisioning, moved);
      });
      await change.settled();
      exchange.reply(204, undefined);
    },
  });
}

async function change(
  parts: ProtocolParts,
  exchange: Exchange<Caller>,
  factsOf: (before: store.StoredUser) => UserFacts,
): Promise<void> {
  const user = await written(parts, exchange, async (provisioning, moved) => {
    const before = await existing(provisioning.tx, exchange);
    protocol.checkVersion(exchange, before.version);
    await changeUser(provisioning, before, factsOf(before), moved);
    return before.userId;
  });
  await replyUser(parts, exchange, 200, user);
}

/** Writes in one transaction, and yields the user once every process knows of who joined or left. */
async function written(
  parts: ProtocolParts,
  exchange: Exchange<Caller>,
  write: (provisioning: Provisioning, moved: Moved) => Promise<string>,
): Promise<store.StoredUser> {
  const { organizationId } = exchange.caller;
  const { user, change } = await parts.database.transaction(async (tx) => {
    const { provisioning, moved } = await begun(parts, tx, exchange);
    const userId = await write(provisioning, moved);
    const user = (await store.findUser(tx, organizationId, userId))!;
    return { user, change: await announceMoved(provisioning, moved) };
  });
  await change.settled();
  return user;
}

async function begun({ changes, clock }: ProtocolParts, tx: Queryable, exchange: Exchange<Caller>) {
  const { organizationId } = exchange.caller;
  await lockOrganization(tx, organizationId);
  const author = authorOf(exchange);
  const provisioning: Provisioning = { tx, changes, organizationId, source: 'push', author, nowMs: clock.now() };
  return { provisioning, moved: new Set<string>() };
}

async function replyUser(parts: ProtocolParts, exchange: Exchange<Caller>, status: 200 | 201, user: store.StoredUser) {
  const root = protocol.rootUrl(exchange);
  const [resource] = await shown(parts.database, [user], protocol.projectionOf(USER, exchange.query), root);
  protocol.replyResource(exchange, status, resource!, protocol.metaOf(USER, user.userId, user, root));
}

async function shown(db: Queryable, users: readonly store.StoredUser[], projection: Projection, root: string) {
  const ids = users.map(({ userId }) => userId);
  const rows = ids.length > 0 && tells(projection, 'groups') ? await store.groupsOfUsers(db, ids) : [];
  const groups = Map.groupBy(rows, ({ userId }) => userId);
  return users.map((user) => project(userResource(user, groups.get(user.userId) ?? [], root), projection));
}

async function existing(db: Queryable, { caller, params }: Exchange<Caller>): Promise<store.StoredUser> {
  const id = params['id']!;
  const user = id.includes('\0') ? undefined : await store.findUser(db, caller.organizationId, id);
  if (!user) throw notFound('user', id);
  return user;
}
