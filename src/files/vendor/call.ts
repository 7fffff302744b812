/** Calls to the file store of a vendor: requests, bounded responses, streamed content, and what failures mean. */
import { Readable } from 'node:stream';
import { GatewayError } from '../../base/errors.ts';
import {
  type Delivery,
  type DeliveryParts,
  deliver,
  type UpstreamCall,
  type UpstreamTarget,
} from '../../providers/index.ts';
import type { Vendor } from './names.ts';

export type VendorRequest = Pick<Delivery, 'path' | 'method' | 'contentType' | 'streamed' | 'url' | 'headers'>;

/** The format that a vendor's models are called in. */
const FORMATS = { openai: 'chat', anthropic: 'messages', google: 'gemini' } as const;
type StoreVendor = Vendor | 'google';

const MOST_REPLY_BYTES = 4 * 1024 * 1024;
const LONGEST_MESSAGE = 500;
/** Large uploads take long before the first byte of the response. */
const TIMEOUTS = { connect: 10_000, firstByte: 600_000, idle: 60_000, stall: 600_000, total: 900_000 };
/** The file API of Anthropic is a beta feature. */
const BETA = { 'anthropic-beta': 'files-api-2025-04-14' };

interface VendorContent {
  contentType: string;
  content: Readable;
}

/** @throws GatewayError for every response but a successful one with a JSON object */
export async function callVendor(
  target: UpstreamTarget,
  vendor: StoreVendor,
  request: VendorRequest,
  parts: DeliveryParts,
): Promise<Record<string, unknown>> {
  const { content } = await openVendor(target, vendor, request, parts);
  const document = parsed(await textOf(content));
  if (document === undefined) throw new GatewayError('provider_unavailable', 'the provider answered without JSON');
  return document;
}

/** Resolves with the begin of a successful response. @throws GatewayError for any other */
export function openVendor(
  { provider, credential }: UpstreamTarget,
  vendor: StoreVendor,
  request: VendorRequest,
  parts: DeliveryParts,
): Promise<VendorContent> {
  const { promise, resolve, reject } = Promise.withResolvers<VendorContent>();
  let call: UpstreamCall | undefined;
  const content = new Readable({
    read: () => call?.resume(),
    destroy(error, done) {
      call?.abort();
      done(error);
    },
  });
  const refuse = async (status: number, retryAfter: string | undefined) =>
    reject(refusal(status, parsed(await textOf(content).catch(() => '')), retryAfter));
  call = deliver(
    {
      provider: { ...provider, timeouts: TIMEOUTS },
      credential,
      format: FORMATS[vendor],
      model: '',
      stream: false,
      body: '',
      operation: 'files',
      clientHeaders: vendor === 'anthropic' ? BETA : {},
      ...request,
    },
    {
      head(status, headers) {
        if (status >= 200 && status < 300) {
          resolve({ contentType: headers['content-type'] ?? 'application/octet-stream', content });
        } else void refuse(status, headers['retry-after']);
      },
      data(chunk) {
        if (!content.push(chunk)) call?.pause();
      },
      end: () => void content.push(null),
      failed({ kind, message }) {
        const type = kind === 'timeout' ? 'timeout' : 'provider_unavailable';
        const error = new GatewayError(type, `the provider cannot be reached: ${message}`);
        reject(error);
        content.destroy(error);
      },
    },
    parts,
  );
  // The reader of `content` or the promise reports its error.
  content.on('error', () => {});
  return promise;
}

async function textOf(content: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_REPLY_BYTES)
      throw new GatewayError('provider_unavailable', 'the answer of the provider is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function refusal(status: number, body: Record<string, unknown> | undefined, retryAfter?: string): GatewayError {
  // The text may repeat a part of the credential.
  if (status === 401 || status === 403) {
    return new GatewayError('provider_unavailable', 'the provider refuses the BYOK credential or its access to files');
  }
  const vendorMessage = (body?.['error'] as { message?: unknown } | undefined)?.message;
  const message =
    typeof vendorMessage === 'string'
      ? vendorMessage.slice(0, LONGEST_MESSAGE)
      : `the provider answered with ${status}`;
  if (status === 404) return new GatewayError('not_found', message);
  if (status === 413) return new GatewayError('payload_too_large', message);
  if (status === 429) {
    const seconds = Number(retryAfter);
    return new GatewayError('rate_limit_exceeded', message, seconds > 0 ? { retryAfterSeconds: seconds } : {});
  }
  return new GatewayError(status < 500 ? 'invalid_request' : 'provider_unavailable', message);
}
