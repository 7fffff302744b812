/**
 * The connection to a bucket: AWS's own client, loaded with the first blob that needs it. Every request has time limits
 * and a bounded number of retries, and every failure is translated once, here.
 */
import { getCACertificates } from 'node:tls';
import type { S3 } from '@aws-sdk/client-s3';
import type { S3Settings } from '../../base/config.ts';
import { redact } from '../../base/log.ts';
import { BlobUnavailable } from '../backend.ts';

export interface S3Options extends S3Settings {
  /** Further certificate authorities to trust, in PEM. */
  extraCa?: string | null;
  /** Overridden in tests. */
  timeLimits?: Partial<typeof TIME_LIMITS>;
}

const TIME_LIMITS = {
  connectMs: 5_000,
  /** From the request to the headers of its response. */
  responseMs: 30_000,
  /** Without any data while a body is read. */
  idleMs: 30_000,
};
/** Of one request, the first included. */
const ATTEMPTS = 3;
const CONNECTIONS = 64;

/** A refusal that is an answer and not a failure, such as a missing object. */
export class S3Refusal extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, status: number, cause: unknown) {
    super(code, { cause });
    this.code = code;
    this.status = status;
  }
}

/** Answers that callers handle; any other is a bucket that cannot be used. */
const ANSWERS = new Set([404, 409, 412, 416]);

export class S3Connection {
  /** For messages. */
  readonly location: string;
  readonly bucket: string;
  readonly prefix: string;
  readonly #options: S3Options;
  #client: Promise<S3> | undefined;

  constructor(options: S3Options) {
    this.#options = options;
    this.bucket = options.bucket;
    this.prefix = options.prefix;
    this.location = `s3://${options.bucket}/${options.prefix}`;
    if (options.keys !== null) redact(options.keys.secretAccessKey.reveal());
  }

  /**
   * @throws S3Refusal for 404, 409, 412 and 416
   * @throws BlobUnavailable when the bucket cannot be used
   */
  async send<Output>(request: (client: S3) => Promise<Output>): Promise<Output> {
    try {
      this.#client ??= this.#open();
      return await request(await this.#client);
    } catch (error) {
      throw this.#translated(error);
    }
  }

  async close(): Promise<void> {
    (await this.#client?.catch(() => undefined))?.destroy();
  }

  async #open(): Promise<S3> {
    const { region, endpoint, pathStyle, keys, extraCa, timeLimits } = this.#options;
    const { connectMs, responseMs, idleMs } = { ...TIME_LIMITS, ...timeLimits };
    const { S3 } = await import('@aws-sdk/client-s3');
    const agent = { keepAlive: true, maxSockets: CONNECTIONS };
    return new S3({
      region,
      forcePathStyle: pathStyle,
      maxAttempts: ATTEMPTS,
      // Parts carry the checksum that we ask for; content is checked as a whole when it is read.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: connectMs,
        requestTimeout: responseMs,
        throwOnRequestTimeout: true,
        socketTimeout: idleMs,
        httpAgent: agent,
        httpsAgent: { ...agent, ...(extraCa && { ca: [...getCACertificates('default'), extraCa] }) },
      },
      ...(endpoint !== null && { endpoint }),
      ...(keys !== null && {
        credentials: { accessKeyId: keys.accessKeyId, secretAccessKey: keys.secretAccessKey.reveal() },
      }),
    });
  }

  #translated(error: unknown): Error {
    const { name = 'Error', $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
    const status = $metadata?.httpStatusCode ?? 0;
    if (ANSWERS.has(status) && name !== 'NoSuchBucket') return new S3Refusal(name, status, error);
    return new BlobUnavailable(`${this.location} cannot be used: ${reasonOf(name, error)}`, { cause: error });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  NoSuchBucket: 'the bucket does not exist',
  PermanentRedirect: 'the bucket is in another region',
  AuthorizationHeaderMalformed: 'the bucket is in another region',
  AccessDenied: 'access is denied',
  InvalidAccessKeyId: 'the access key is not known',
  SignatureDoesNotMatch: 'the secret access key is wrong',
  CredentialsProviderError: 'there are no credentials',
  NotImplemented: 'the service lacks conditional writes or checksums',
};

/** A code only: messages of services may quote headers. */
function reasonOf(name: string, error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return REASONS[name] ?? (typeof code === 'string' ? code : name);
}
