/** S3 and compatible stores: one JSON object for each generation, signed by AWS's own library. */
import type { Outgoing } from '../../egress/index.ts';
import { SigningHash } from '../../providers/index.ts';
import type { GenerationRecord } from '../record.ts';
import {
  baseUrl,
  type DestinationKind,
  type FullConfig,
  headerText,
  JSON_BODY,
  type Scene,
  secret,
  text,
} from './kind.ts';
import { plainRecord } from './plain.ts';

const USUAL_REGION = 'us-east-1';
const BATCH_UNITS = 512 * 1024;
const BUCKET = { matches: /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, says: 'must be the name of a bucket' };
const REGION = { matches: /^[a-z0-9-]{1,40}$/, says: 'must be the name of a region' };
const PLACEHOLDERS = ['prefix', 'date', 'year', 'month', 'day', 'apiKeyName'] as const;
const TEMPLATE = {
  matches: new RegExp(`^(?:[^{}]|\\{(?:${PLACEHOLDERS.join('|')})\\})*$`),
  says: `must have no braces but those of the placeholders ${PLACEHOLDERS.map((name) => `{${name}}`).join(', ')}`,
};

export const s3: DestinationKind = {
  type: 's3',
  fields: {
    bucketName: text({ pattern: BUCKET }),
    accessKeyId: headerText(),
    secretAccessKey: secret(),
    sessionToken: secret({ optional: true }),
    region: text({ optional: true, pattern: REGION }),
    endpoint: baseUrl({ optional: true }),
    prefix: text({ default: 'svc-traces' }),
    pathTemplate: text({ default: '{prefix}/{date}', pattern: TEMPLATE }),
  },
  durable: true,
  batchUnits: BATCH_UNITS,
  probe: (config, scene) => put(config, `${config.members['prefix']}/connection-test.json`, '{}', scene),
  requests: (config, records, scene) =>
    Promise.all(
      records.map((record) => put(config, keyOf(config, record), JSON.stringify(plainRecord(record)), scene)),
    ),
};

/** Ends in the span, because generations of one trace may begin in the same millisecond. */
function keyOf({ members }: FullConfig, record: GenerationRecord): string {
  const [date = ''] = new Date(record.startedAt).toISOString().split('T');
  const [year = '', month = '', day = ''] = date.split('-');
  const values: Record<string, string> = {
    ...{ date, year, month, day },
    prefix: members['prefix']!,
    apiKeyName: record.keyName.replaceAll(/[^\w.-]/g, '_'),
  };
  const path = members['pathTemplate']!.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  return `${path}/${record.traceId}-${record.startedAt}-${record.spanId}.json`;
}

async function put({ members, headers }: FullConfig, key: string, body: string, { now }: Scene): Promise<Outgoing> {
  const { accessKeyId, secretAccessKey, sessionToken, region = USUAL_REGION } = members;
  const target = new URL(bucketUrl(members, region));
  const path = key.split('/').filter((segment) => segment !== '' && segment !== '.' && segment !== '..');
  const pathname = `${target.pathname.replace(/\/+$/, '')}/${path.map(encodeURIComponent).join('/')}`;
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const signer = new SignatureV4({
    credentials: {
      accessKeyId: accessKeyId!,
      secretAccessKey: secretAccessKey!,
      ...(sessionToken && { sessionToken }),
    },
    ...{ region, service: 's3', sha256: SigningHash, uriEscapePath: false },
  });
  const signed = await signer.sign(
    {
      ...{ method: 'PUT', protocol: target.protocol, hostname: target.hostname, path: pathname, body, query: {} },
      headers: { ...JSON_BODY, ...headers, host: target.host },
    },
    { signingDate: new Date(now) },
  );
  const { host: _, ...sent } = signed.headers;
  return { url: target.origin + pathname, method: 'PUT', headers: sent, body };
}

/** Names with dots do not match the certificate of a host name. */
function bucketUrl({ endpoint, bucketName }: Readonly<Record<string, string>>, region: string): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/+$/, '')}/${bucketName}`;
  const host = `s3.${region}.amazonaws.com`;
  return bucketName!.includes('.') ? `https://${host}/${bucketName}` : `https://${bucketName}.${host}`;
}
