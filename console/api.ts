/**
 * Calls the gateway's public operations with the session of this browser. Types come from `openapi.json`. URLs are
 * relative to the page, so that the console works below any path.
 */
import type { ApiOperations, RootOperations } from './api.gen.ts';

interface Described {
  path: object;
  query: object;
  body: unknown;
  reply: unknown;
}

export interface Call<O extends Described> {
  path?: O['path'];
  query?: O['query'];
  body?: O['body'];
  signal?: AbortSignal;
}

export type ApiName = keyof ApiOperations;
export type Reply<N extends ApiName> = ApiOperations[N]['reply'];
export type Body<N extends ApiName> = ApiOperations[N]['body'];

/** Makes a request one that only the console can send; pages of other origins cannot set it. */
const MARK = { 'X-Gatehouse-Console': '1' };

/** A refusal of the gateway, in its own words. */
export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string | undefined;
  /** `gen-...` of a request to a model. */
  readonly generationId: string | undefined;

  constructor(status: number, message: string, requestId?: string, generationId?: string) {
    super(message);
    this.status = status;
    this.requestId = requestId;
    this.generationId = generationId;
  }
}

/** An operation below `/api/v1`. */
export function api<N extends ApiName>(name: N, call: Call<ApiOperations[N]> = {}): Promise<Reply<N>> {
  return send(name, '../api/v1', call) as Promise<Reply<N>>;
}

/** An operation at the root of the gateway. */
export function root<N extends keyof RootOperations>(
  name: N,
  call: Call<RootOperations[N]> = {},
): Promise<RootOperations[N]['reply']> {
  return send(name, '..', call);
}

/** The response itself, for streams, files and texts. Throws ApiError for an error status. */
export async function request(
  method: string,
  url: string,
  {
    body,
    signal,
    headers = {},
  }: { body?: unknown; signal?: AbortSignal | undefined; headers?: Record<string, string> },
): Promise<Response> {
  const isForm = body instanceof FormData;
  const response = await fetch(url, {
    method,
    headers: { ...MARK, ...(body !== undefined && !isForm && { 'Content-Type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
    cache: 'no-store',
    credentials: 'same-origin',
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The gateway cannot be reached. It may be restarting.');
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function send(name: string, base: string, call: Call<Described>): Promise<unknown> {
  const [method = 'GET', template = ''] = name.split(' ');
  const path = template.replace(/\{(\w+)\}/g, (_, member: string) =>
    encodeURIComponent(String((call.path as Record<string, unknown> | undefined)?.[member] ?? '')),
  );
  const query = queryText(call.query ?? {});
  const response = await request(method, `${base}${path}${query}`, { body: call.body, signal: call.signal });
  return response.headers.get('content-type')?.includes('json') ? response.json() : response.text();
}

export function queryText(query: object): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const isPage = text.trimStart().startsWith('<');
  let message = isPage ? '' : text.slice(0, 500);
  message ||= `The gateway, or a proxy before it, answered with status ${response.status}.`;
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } | string };
    const said = typeof error === 'string' ? error : error?.message;
    if (typeof said === 'string') message = said;
  } catch {
    // Not JSON: a proxy answered.
  }
  return new ApiError(response.status, message, requestId, response.headers.get('x-generation-id') ?? undefined);
}
