/** The built files of the console (`build/console.ts`), read when the first of them is asked for. */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { GatewayError } from '../base/errors.ts';
import type { Exchange } from '../http/operation.ts';

/** Scripts and styles come from this gateway only, and nothing is sent elsewhere. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': POLICY,
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
  Vary: 'Accept-Encoding',
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Best first; the file's suffix for each. */
const CODINGS = { br: '.br', gzip: '.gz' } as const;
type Coding = keyof typeof CODINGS;

interface ConsoleFile {
  type: string;
  body: Buffer;
  compressed: Partial<Record<Coding, Buffer>>;
  etag: string;
}

export class ConsoleFiles {
  readonly #folder: string;
  #files: ReadonlyMap<string, ConsoleFile> | undefined;

  /** @param folder default: next to the bundle that runs */
  constructor(folder = path.join(import.meta.dirname, 'console')) {
    this.#folder = folder;
  }

  /** False where the gateway runs from its sources without having been built. */
  get built(): boolean {
    this.#files ??= readFiles(this.#folder);
    return this.#files.has('index.html');
  }

  /** @throws GatewayError 404 */
  answer<C>({ headers, response }: Pick<Exchange<C>, 'headers' | 'response'>, name: string): void {
    const file = this.built ? this.#files?.get(name) : undefined;
    if (file === undefined) throw new GatewayError('not_found', this.built ? `no such file: ${name}` : NOT_BUILT);
    // Names of all files but the first contain a hash of their content.
    const caching = name === 'index.html' ? 'no-cache' : 'public, max-age=31536000, immutable';
    const common = { ...HEADERS, 'Cache-Control': caching, ETag: file.etag };
    if (headers['if-none-match']?.includes(file.etag)) {
      response.writeHead(304, common);
      response.end();
      return;
    }
    const coding = codingOf(String(headers['accept-encoding'] ?? ''), file);
    const body = coding === undefined ? file.body : file.compressed[coding]!;
    response.writeHead(200, {
      ...common,
      'Content-Type': file.type,
      ...(coding !== undefined && { 'Content-Encoding': coding }),
      'Content-Length': body.length,
    });
    response.end(body);
  }
}

const NOT_BUILT = 'The console is not built. Start the gateway with `npm start`, or run `npm run build`.';

function readFiles(folder: string): ReadonlyMap<string, ConsoleFile> {
  const files = new Map<string, ConsoleFile>();
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return files;
  }
  for (const name of names) {
    const type = TYPES[path.extname(name)];
    if (type === undefined) continue;
    const body = readFileSync(path.join(folder, name));
    const compressed: ConsoleFile['compressed'] = {};
    for (const [coding, suffix] of Object.entries(CODINGS) as [Coding, string][]) {
      if (names.includes(name + suffix)) compressed[coding] = readFileSync(path.join(folder, name + suffix));
    }
    files.set(name, { type, body, compressed, etag: `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"` });
  }
  return files;
}

function codingOf(accepted: string, { compressed }: ConsoleFile): Coding | undefined {
  const codings = Object.keys(CODINGS) as Coding[];
  return codings.find(
    (coding) =>
      compressed[coding] !== undefined && new RegExp(`\\b${coding}\\b(?!\\s*;\\s*q=0(?:\\.0*)?(?:,|$))`).test(accepted),
  );
}
