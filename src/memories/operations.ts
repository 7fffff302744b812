/** The operations on memories, `/memories`: what models keep for end users and sessions, for the workspace's managers. */
import { type Caller, chosenWorkspace } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { invalidField, orNotFound } from '../base/errors.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { DeletedEnvelope, idOf, listReply, ok, pageOf } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { ownerOf } from './memories.ts';
import * as schema from './schema.ts';
import { opened } from './sealed.ts';
import * as store from './store.ts';

export interface MemoryOperationParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
}

const common = { tag: 'Memories', access: MANAGEMENT } as const;

/** Reads `parts` only while handling a request. */
export function memoryOperations(parts: MemoryOperationParts): Operation<Caller>[] {
  return [listMemories(parts), getMemory(parts), deleteMemory(parts)];
}

function listMemories(parts: MemoryOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'listMemories',
    method: 'GET',
    path: '/memories',
    summary: 'List the memories of end users and sessions of a workspace, last changed first',
    query: schema.ListMemoriesQuerySchema,
    replies: ok('One page, of the default workspace unless `workspace_id` is given', schema.MemoryListEnvelope),
    async handle(exchange) {
      const { database } = parts;
      const query = exchange.query as schema.ListMemoriesQuery;
      const workspaceId = await workspaceOf(exchange, database);
      const { user, session_id: session } = query;
      if (user !== undefined && session !== undefined) throw invalidField('session_id', 'cannot be combined with user');
      const owner =
        user !== undefined ? ownerOf('user', user) : session === undefined ? undefined : ownerOf('session', session);
      const { folders, total } = await store.foldersOf(database, { workspaceId, owner, ...pageOf(query) });
      const data = folders.map(({ files, ...folder }) => ({ ...shown(folder), file_count: files }));
      exchange.reply(200, listReply(data, total));
    },
  };
}

function getMemory(parts: MemoryOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'getMemory',
    method: 'GET',
    path: '/memories/{id}',
    summary: 'Show the files of a memory with their texts',
    params: schema.MemoryParamsSchema,
    query: schema.MemoryQuerySchema,
    replies: ok('The memory', schema.MemoryEnvelope),
    async handle(exchange) {
      const { database, sealing } = parts;
      const folder = await folderOf(exchange, database);
      const files = await store.contentsOf(database, folder);
      const texts = await opened(sealing, files);
      const data = {
        ...shown(folder),
        files: files.map(({ path, bytes, updatedAt }, index) => {
          return { path, content: texts[index]!, bytes, updated_at: updatedAt.toISOString() };
        }),
      };
      exchange.reply(200, { data });
    },
  };
}

function deleteMemory(parts: MemoryOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteMemory',
    method: 'DELETE',
    path: '/memories/{id}',
    summary: 'Delete a memory with all its files',
    params: schema.MemoryParamsSchema,
    query: schema.MemoryQuerySchema,
    replies: ok('The memory is deleted', DeletedEnvelope),
    async handle(exchange) {
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const folder = await folderOf(exchange, tx, true);
        await store.removeFolder(tx, folder);
        const { id, ...state } = shown(folder);
        await changed({
          action: 'memory.deleted',
          resourceType: 'memory',
          resourceId: id,
          workspaceId: folder.workspaceId,
          before: { ...state, file_count: folder.files },
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

async function workspaceOf({ caller, query }: Exchange<Caller>, db: Queryable, hold = false): Promise<string> {
  const { workspace_id: named } = query as schema.MemoryQuery;
  return chosenWorkspace(db, caller.organizationId, named?.toLowerCase(), hold);
}

async function folderOf(
  exchange: Exchange<Caller>,
  db: Queryable,
  hold = false,
): Promise<store.Folder & { workspaceId: string }> {
  const id = idOf(exchange);
  const workspaceId = await workspaceOf(exchange, db, hold);
  const owner = /^[0-9a-f]{64}$/.test(id) ? Buffer.from(id, 'hex') : undefined;
  const found = owner && (await store.foldersOf(db, { workspaceId, owner, offset: 0, limit: 1 })).folders[0];
  return { ...orNotFound(found, 'memory with this id'), workspaceId };
}

function shown({ owner, isSession, bytes, updatedAt }: Omit<store.Folder, 'files'>) {
  return {
    id: owner.toString('hex'),
    scope: isSession ? 'session' : 'user',
    bytes,
    updated_at: updatedAt.toISOString(),
  };
}
