/**
 * The file stores of vendors, for files that conversations reference there: which files they take, and the calls.
 * OpenAI (platform.openai.com/docs/api-reference/files), Anthropic (docs.claude.com, Files API), Google
 * (ai.google.dev/api/files).
 */
import { randomUUID } from 'node:crypto';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import type { VendorRequest } from '../vendor/call.ts';
import { uploadRequest } from '../vendor/form.ts';

interface CopiedFile {
  readonly filename: string;
  readonly mimeType: string;
  readonly bytes: number;
}

interface VendorFile {
  /** As conversations name it. */
  id: string;
  /** False while the vendor still processes it. */
  ready: boolean;
}

export interface VendorStore {
  readonly vendor: 'openai' | 'anthropic' | 'google';
  readonly maxBytes: number;
  /** How long the vendor keeps a file; null: until it is removed. */
  readonly lifetimeMs: number | null;
  /** Beta features that conversations with such files need. */
  readonly betas: readonly string[];
  /** Whether a conversation in the format can name such a file. */
  takes(format: FormatId, mimeType: string): boolean;
  /** Undefined where the address of the provider shows no place for uploads. */
  upload(file: CopiedFile, content: AsyncIterable<Buffer>, baseUrl: string): VendorRequest | undefined;
  /** Undefined for an unexpected response. */
  read(reply: Readonly<Record<string, unknown>>): VendorFile | undefined;
  /** Path of the file below the base URL. */
  path(id: string): string;
}

const PDF = 'application/pdf';
const OFFICE = /^application\/vnd\.openxmlformats-officedocument\./;
const MIB = 1024 * 1024;
const DAY_MS = 24 * 3_600_000;
const ID = /^[A-Za-z0-9_-]{1,200}$/;

/** Expiry at the vendor removes copies that the gateway cannot remove itself, such as those of a replaced credential. */
const OPENAI_DAYS = 30;

const openai: VendorStore = {
  vendor: 'openai',
  maxBytes: 50 * MIB,
  lifetimeMs: OPENAI_DAYS * DAY_MS,
  betas: [],
  takes(format, mimeType) {
    if (format === 'chat') return mimeType === PDF;
    return format === 'responses' && (mimeType === PDF || OFFICE.test(mimeType) || mimeType.startsWith('image/'));
  },
  upload: ({ filename, mimeType, bytes }, content) =>
    uploadRequest(
      { filename, mimeType, bytes, content },
      {
        purpose: mimeType.startsWith('image/') ? 'vision' : 'user_data',
        'expires_after[anchor]': 'created_at',
        'expires_after[seconds]': String((OPENAI_DAYS * DAY_MS) / 1000),
      },
    ),
  read: ({ id }) => (typeof id === 'string' && ID.test(id) ? { id, ready: true } : undefined),
  path: (id) => `/files/${id}`,
};

const anthropic: VendorStore = {
  vendor: 'anthropic',
  maxBytes: 500 * MIB,
  lifetimeMs: null,
  betas: ['files-api-2025-04-14'],
  takes: (format, mimeType) => format === 'messages' && (mimeType === PDF || mimeType.startsWith('image/')),
  upload: ({ filename, mimeType, bytes }, content) => uploadRequest({ filename, mimeType, bytes, content }, {}),
  read: openai.read,
  path: openai.path,
};

const google: VendorStore = {
  vendor: 'google',
  maxBytes: 2048 * MIB,
  lifetimeMs: 2 * DAY_MS,
  betas: [],
  takes: (format, mimeType) => format === 'gemini' && (mimeType === PDF || /^(?:image|audio)\//.test(mimeType)),
  upload({ mimeType, bytes }, content, baseUrl) {
    const [, root, version] = /^(.*)\/(v\d\w*)$/.exec(baseUrl) ?? [];
    if (root === undefined) return undefined;
    const boundary = `gatehouse-${randomUUID()}`;
    const head = Buffer.from(
      `--${boundary}\r\ncontent-type: application/json\r\n\r\n{"file":{}}\r\n--${boundary}\r\ncontent-type: ${mimeType}\r\n\r\n`,
    );
    const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
    return {
      path: '',
      url: `${root}/upload/${version}/files?uploadType=multipart`,
      contentType: `multipart/related; boundary=${boundary}`,
      headers: { 'x-goog-upload-protocol': 'multipart' },
      streamed: { bytes: head.length + bytes + tail.length, chunks: between(head, content, tail) },
    };
  },
  read(reply) {
    const { uri, state } = (reply['file'] ?? reply) as { uri?: unknown; state?: unknown };
    if (typeof uri !== 'string' || nameIn(uri) === undefined || state === 'FAILED') return undefined;
    return { id: uri, ready: state !== 'PROCESSING' };
  },
  path: (id) => `/files/${nameIn(id)}`,
};

/** By the kind of the provider. */
export const STORES: ReadonlyMap<string, VendorStore> = new Map(
  [openai, anthropic, google].map((each) => [each.vendor, each]),
);

async function* between(head: Buffer, content: AsyncIterable<Buffer>, tail: Buffer): AsyncGenerator<Buffer> {
  yield head;
  yield* content;
  yield tail;
}

function nameIn(uri: string): string | undefined {
  return /^https?:\/\/[^\s?#]+\/files\/([A-Za-z0-9_-]{1,100})$/.exec(uri)?.[1];
}
