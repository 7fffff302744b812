/** `/containers`: the files that code in containers has made. */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Caller } from '../access/index.ts';
import { invalidField, orNotFound } from '../base/errors.ts';
import { unixSeconds } from '../base/timestamp.ts';
import { addToolFile, FileReply, type FileStoreParts } from '../files/index.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Sandbox } from '../sandboxes/index.ts';
import type { ContainerFile, StoredContainer } from './container.ts';
import type { Containers } from './containers.ts';
import { contentOf } from './listing.ts';
import * as schema from './schema.ts';

export interface ContainerOperationParts extends FileStoreParts {
  containers: Containers;
}

const FILE = 'file with this id in a container of this key';

const common = { tag: 'Containers', access: INFERENCE } as const;
/** Of those that open a container. */
const OPENING_ERRORS = [409, 413, 429];

/** Looks into `parts` only when a request comes. */
export function containerOperations(parts: ContainerOperationParts): Operation<Caller>[] {
  return [
    listContainerFiles(parts),
    getContainerFile(parts),
    downloadContainerFile(parts),
    promoteContainerFile(parts),
  ];
}

function listContainerFiles(parts: ContainerOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'listContainerFiles',
    method: 'GET',
    path: '/containers/{container_id}/files',
    summary: 'List the files that the commands of a model made in a container of the key, by their paths',
    params: schema.ContainerParams,
    query: schema.ListContainerFilesQuery,
    replies: ok('One page', schema.ContainerFileListSchema),
    async handle(exchange) {
      const { limit = schema.DEFAULT_PAGE, after } = exchange.query as { limit?: number; after?: string };
      // A container that does not exist has no files, as in the public interface.
      const container = await findContainer(exchange, parts);
      const files = container === undefined ? [] : await parts.containers.files(container);
      const start = after === undefined ? 0 : files.findIndex(({ id }) => id === after) + 1;
      if (after !== undefined && start === 0) throw invalidField('after', 'is not the id of a file in the container');
      const found = files.slice(start, start + limit + 1);
      const data = found.slice(0, limit).map((file) => shown(file, container!));
      exchange.reply(200, {
        object: 'list',
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: found.length > limit,
        ...(container?.unsavedAt && { unsaved_at: Math.floor(container.unsavedAt.getTime() / 1000) }),
      });
    },
  };
}

function getContainerFile(parts: ContainerOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'getContainerFile',
    method: 'GET',
    path: '/containers/{container_id}/files/{file_id}',
    summary: 'Show a file of a container',
    params: schema.ContainerFileParams,
    replies: ok('The file', schema.ContainerFileSchema),
    async handle(exchange) {
      const { file, container } = await fileOf(exchange, parts);
      exchange.reply(200, shown(file, container));
    },
  };
}

function downloadContainerFile(parts: ContainerOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'downloadContainerFile',
    method: 'GET',
    path: '/containers/{container_id}/files/{file_id}/content',
    summary: 'Download a file of a container',
    params: schema.ContainerFileParams,
    errors: OPENING_ERRORS,
    replies: { 200: { description: 'The content', contentType: 'application/octet-stream' } },
    async handle(exchange) {
      await reading(exchange, parts, async (content, { path }) => {
        // A failure before the first byte becomes an error response.
        const first = await content.next();
        exchange.response.writeHead(200, {
          'Content-Type': 'application/octet-stream',
          'Content-Disposition': `attachment; filename*=UTF-8''${encodeURIComponent(nameOf(path))}`,
          'X-Content-Type-Options': 'nosniff',
        });
        await pipeline(Readable.from(following(first, content)), exchange.response);
      });
    },
  };
}

async function* following(first: IteratorResult<Buffer>, content: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (first.done !== true) yield first.value;
  yield* content;
}

function promoteContainerFile(parts: ContainerOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'promoteContainerFile',
    method: 'POST',
    path: '/containers/{container_id}/files/{file_id}/promote',
    summary: 'Copy a file of a container to the files of the workspace',
    params: schema.ContainerFileParams,
    errors: OPENING_ERRORS,
    replies: ok('The new file, in the shape that the client expects', FileReply),
    async handle(exchange) {
      await reading(exchange, parts, async (content, { path }) => {
        exchange.reply(200, await addToolFile(exchange, parts, { filename: nameOf(path), content }));
      });
    },
  };
}

/** Opens the container where its file can be read. */
async function reading(
  exchange: Exchange<Caller>,
  parts: ContainerOperationParts,
  work: (content: AsyncGenerator<Buffer>, file: ContainerFile) => Promise<void>,
): Promise<void> {
  const { file, container } = await fileOf(exchange, parts);
  const gone = new AbortController();
  exchange.onClose(() => gone.abort());
  const isThere = await parts.containers.reading(container, gone.signal, async (sandbox: Sandbox) => {
    await work(await contentOf(sandbox, file.path, parts.limits.fileBytes), file);
    return true;
  });
  orNotFound(isThere, FILE);
}

function findContainer(
  { caller, params }: Exchange<Caller>,
  { containers }: ContainerOperationParts,
): Promise<StoredContainer | undefined> {
  return containers.find(caller, params['container_id'] ?? '');
}

async function fileOf(
  exchange: Exchange<Caller>,
  parts: ContainerOperationParts,
): Promise<{ file: ContainerFile; container: StoredContainer }> {
  const container = orNotFound(await findContainer(exchange, parts), FILE);
  const file = (await parts.containers.files(container)).find(({ id }) => id === exchange.params['file_id']);
  return { file: orNotFound(file, FILE), container };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function shown({ id, path, bytes, changedAt }: ContainerFile, { name }: StoredContainer) {
  return {
    ...{ id, object: 'container.file', container_id: name, path, bytes },
    ...{ created_at: unixSeconds(changedAt), source: 'assistant' },
  };
}
