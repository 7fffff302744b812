/**
 * The Files API of Gemini, for its clients: `/v1beta/files`, and uploads below `/upload`. Below `/v1`, Google's clients share
 * `/files` with others (`../operations.ts`).
 */
import type { Caller } from '../../access/index.ts';
import type { GatewayError } from '../../base/errors.ts';
import { gemini } from '../../formats/index.ts';
import { ANY_KEY } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import { publicUrl } from '../../http/public-url.ts';
import { fileOrContent, workspaceOf } from '../chosen-file.ts';
import { FILE_LIMITS } from '../upload.ts';
import { announcedIn } from './command.ts';
import { deleteForGoogle, getForGoogle, listForGoogle } from './handlers.ts';
import * as schema from './schema.ts';
import { googleFile } from './shape.ts';
import { continueUpload, progressHeaders, startUpload, type UploadParts } from './uploads.ts';

const FILES = '/v1beta/files';
const UPLOADS = '/upload/v1beta/files';
const START_BYTES = 64 * 1024;
const PROGRESS_HEADERS = {
  'X-Goog-Upload-Status': '`active`, `final` or `cancelled`',
  'X-Goog-Upload-Size-Received': 'Bytes that have arrived',
  'X-Goog-Upload-Chunk-Granularity': 'Chunks begin at multiples of it',
};

const common = {
  root: true,
  tag: 'Files',
  access: { ...ANY_KEY, regions: ['global'] },
  anyQuery: true,
  ...(gemini.operation.errorSchema && { errorSchema: gemini.operation.errorSchema }),
  encodeError: (error: GatewayError) => gemini.encodeFailure(error, { generationId: null }),
} as const;

export function googleFileOperations(parts: UploadParts): Operation<Caller>[] {
  return [
    start(parts, 'v1', ''),
    start(parts, 'v1beta', 'Beta'),
    proceed(parts),
    list(parts),
    get(parts),
    remove(parts),
  ];
}

function start(parts: UploadParts, version: string, suffix: string): Operation<Caller> {
  return {
    ...common,
    id: `startGoogleFileUpload${suffix}`,
    method: 'POST',
    path: `/upload/${version}/files`,
    keyInQuery: true,
    summary: "Start a resumable upload, for Google's clients",
    query: schema.ScopeQuery,
    body: { schema: schema.StartBody, optional: true, maxBytes: START_BYTES },
    errors: [413, 429],
    replies: {
      200: {
        description: 'Where the file is to be sent',
        schema: schema.Empty,
        headers: { 'X-Goog-Upload-URL': 'The URL of the upload, which needs no key', ...PROGRESS_HEADERS },
      },
    },
    async handle(exchange) {
      const workspaceId = await workspaceOf(exchange, parts);
      const announced = announcedIn(exchange.headers, exchange.body);
      const token = await startUpload(exchange.caller, workspaceId, parts, announced);
      const url = `${publicUrl(exchange)}${UPLOADS}/${token}`;
      exchange.reply(200, {}, { 'X-Goog-Upload-URL': url, ...progressHeaders('active', 0) });
    },
  };
}

function proceed(parts: UploadParts): Operation<Caller> {
  return {
    ...common,
    id: 'continueGoogleFileUpload',
    method: 'POST',
    path: `${UPLOADS}/{upload}`,
    access: { kinds: 'anyone', regions: ['global'] },
    summary: 'Send a chunk to the URL of an upload, query its progress, finalize or cancel it',
    params: schema.UploadParams,
    upload: { schema: schema.Chunk, maxBytes: FILE_LIMITS.fileBytes, optional: true },
    errors: [401, 403, 404, 409, 416],
    replies: {
      200: {
        description: 'The progress; the file once the upload is `final`',
        schema: schema.UploadReply,
        headers: PROGRESS_HEADERS,
      },
    },
    async handle(exchange) {
      const { status, receivedBytes, file } = await continueUpload(exchange, exchange.params['upload']!, parts);
      const reply = file === undefined ? {} : { file: googleFile(file, publicUrl(exchange)) };
      exchange.reply(200, reply, progressHeaders(status, receivedBytes));
    },
  };
}

function list(parts: UploadParts): Operation<Caller> {
  return {
    ...common,
    id: 'listGoogleFiles',
    method: 'GET',
    path: FILES,
    keyInQuery: true,
    summary: "List the files of a workspace, oldest first, for Google's clients",
    query: schema.ListQuery,
    replies: ok('One page', schema.GoogleFileList),
    handle: (exchange) => listForGoogle(exchange, parts),
  };
}

function get(parts: UploadParts): Operation<Caller> {
  return {
    ...common,
    id: 'getGoogleFile',
    method: 'GET',
    path: `${FILES}/{file}`,
    keyInQuery: true,
    summary:
      "Get a file, for Google's clients; its content if the path ends with `:download` and a tool or a batch made it",
    params: schema.FileParams,
    query: schema.ScopeQuery,
    errors: [416],
    replies: fileOrContent(schema.GoogleFile),
    handle: (exchange) => getForGoogle(exchange, exchange.params['file']!, parts),
  };
}

function remove(parts: UploadParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteGoogleFile',
    method: 'DELETE',
    path: `${FILES}/{file}`,
    keyInQuery: true,
    summary: "Delete a file, for Google's clients",
    params: schema.FileParams,
    query: schema.ScopeQuery,
    replies: ok('The file is gone', schema.Empty),
    handle: (exchange) => deleteForGoogle(exchange, exchange.params['file']!, parts),
  };
}
