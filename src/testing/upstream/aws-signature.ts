/**
 * AWS signature version 4, recomputed from a received request by the steps of its documentation ("Create a
 * signed AWS API request"), for scripted upstreams that check what reaches them. Shares no code with the gateway.
 */
import { createHash, createHmac } from 'node:crypto';

export interface SignedRequest {
  method: string;
  /** As it stood on the wire, query included. */
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();

/**
 * Null when the signature is right, else what is wrong with it. Every service but S3 encodes the path once more. S3 names
 * the checksum of the body in a header, which must fit, or says that the signature does not cover the body.
 */
export function signatureFault(
  request: SignedRequest,
  keys: Record<string, string>,
  { region, service, isStreamed = false }: { region: string; service: string; isStreamed?: boolean },
): string | null {
  const authorization = String(request.headers['authorization'] ?? '');
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (parts === null) return `no signature: ${authorization}`;
  const [, id = '', day = '', inRegion, forService, names = '', signature] = parts;
  const secret = keys[id];
  if (secret === undefined) return `unknown key ${id}`;
  if (inRegion !== region || forService !== service) return `signed for ${inRegion}/${forService}`;
  const signed = names.split(';');
  for (const needed of ['host', 'x-amz-date']) if (!signed.includes(needed)) return `${needed} is not signed`;
  for (const name of Object.keys(request.headers)) {
    if (name.startsWith('x-amz-') && !signed.includes(name)) return `${name} is not signed`;
  }
  const date = String(request.headers['x-amz-date']);
  if (!date.startsWith(day)) return 'the dates differ';
  const [path = '', query = ''] = request.path.split('?');
  const canonicalPath = service === 's3' ? path : path.split('/').map(encoded).join('/');
  const bodyHash = isStreamed ? 'UNSIGNED-PAYLOAD' : sha256(request.body);
  if (service === 's3' && request.headers['x-amz-content-sha256'] !== bodyHash) return 'the body has another checksum';
  const canonicalHeaders = signed.map((name) => `${name}:${String(request.headers[name] ?? '').trim()}\n`).join('');
  const canonical = [
    request.method,
    canonicalPath,
    query.split('&').sort().join('&'),
    canonicalHeaders,
    names,
    bodyHash,
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n');
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), service), 'aws4_request');
  return hmac(key, toSign).toString('hex') === signature ? null : 'the signature does not fit the request';
}

/** Everything but letters, digits and `-._~` as its bytes in hexadecimal digits, also `%`. */
function encoded(segment: string): string {
  return [...Buffer.from(segment, 'utf8')]
    .map((byte) => {
      const letter = String.fromCharCode(byte);
      return /[A-Za-z0-9._~-]/.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}
