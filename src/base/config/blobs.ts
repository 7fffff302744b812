/** The section `blobs` of the yaml, or the variables `GATEHOUSE_S3_*` (docs/guides/files.md). */
import { Secret } from '../secret.ts';
import type { Environment } from './environment.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { flag, mapping, textLike } from './readers.ts';

export interface BlobSettings {
  /** null: the folder `blobs` in the data directory. */
  s3: S3Settings | null;
}

export interface S3Settings {
  bucket: string;
  region: string;
  /** Without a trailing slash; null: that of AWS for the region. */
  endpoint: string | null;
  /** Beginning of every key. */
  prefix: string;
  /** Whether the bucket is in the path of a URL instead of its host name. */
  pathStyle: boolean;
  /** null: the standard AWS credential chain. */
  keys: S3Keys | null;
}

export interface S3Keys {
  accessKeyId: string;
  secretAccessKey: Secret;
}

const DEFAULT_S3_REGION = 'us-east-1';
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const BUCKET_FORM = 'a bucket name: 3 to 63 lower-case letters, digits, dots and dashes';
const REGION = /^[a-z0-9-]{1,64}$/;
const REGION_FORM = 'a region such as eu-central-1';
/** Characters that need no encoding in a URL, so that every service and tool shows the same key. */
const PREFIX = /^[A-Za-z0-9_.-][A-Za-z0-9_./-]{0,254}$/;
const PREFIX_FORM = 'up to 255 letters, digits and _ . - /, not beginning with a slash';
const VARIABLES = [
  'GATEHOUSE_S3_REGION',
  'GATEHOUSE_S3_ENDPOINT',
  'GATEHOUSE_S3_PREFIX',
  'GATEHOUSE_S3_PATH_STYLE',
  'GATEHOUSE_S3_ACCESS_KEY_ID',
  'GATEHOUSE_S3_SECRET_ACCESS_KEY',
  'GATEHOUSE_S3_SECRET_ACCESS_KEY_FILE',
];

export function blobs(field: Field): { s3: YamlS3 | undefined } | undefined {
  return mapping(field, { s3 });
}

/** What the yaml says; defaults that depend on the environment are missing. */
interface YamlS3 {
  bucket: string;
  region: string | undefined;
  endpoint: string | null;
  prefix: string;
  pathStyle: boolean | undefined;
  keys: S3Keys | null;
}

function s3(field: Field): YamlS3 | undefined {
  const credential = textLike(CREDENTIAL, 'a text without spaces or control characters');
  const read = mapping(
    field,
    {
      bucket: textLike(BUCKET, BUCKET_FORM),
      region: textLike(REGION, REGION_FORM),
      endpoint: baseUrl,
      prefix: textLike(PREFIX, PREFIX_FORM),
      path_style: flag,
      access_key_id: credential,
      secret_access_key: credential,
    },
    ['bucket'],
  );
  if (read?.bucket === undefined) return undefined;
  const { access_key_id: id, secret_access_key: secret } = read;
  if ((id === undefined) !== (secret === undefined)) {
    return field.fail('needs access_key_id and secret_access_key together, or neither');
  }
  return {
    bucket: read.bucket,
    region: read.region,
    endpoint: read.endpoint ?? null,
    prefix: read.prefix ?? '',
    pathStyle: read.path_style,
    keys: id === undefined || secret === undefined ? null : { accessKeyId: id, secretAccessKey: new Secret(secret) },
  };
}

/** @param yaml the section as `blobs` read it */
export function blobSettings(yaml: { s3: YamlS3 | undefined } | undefined, environment: Environment): BlobSettings {
  const fromVariables = s3Variables(environment);
  if (fromVariables !== undefined && yaml?.s3 !== undefined) {
    environment.fail('GATEHOUSE_S3_BUCKET', 'and blobs.s3 of the yaml file are both set; set only one');
  }
  const read = yaml?.s3 ?? fromVariables;
  if (read === undefined) return { s3: null };
  const region = read.region ?? like(environment, 'AWS_REGION', REGION, REGION_FORM) ?? DEFAULT_S3_REGION;
  // Few services besides AWS answer at a host name per bucket.
  return { s3: { ...read, region, pathStyle: read.pathStyle ?? read.endpoint !== null } };
}

function s3Variables(environment: Environment): YamlS3 | undefined {
  const bucket = environment.get('GATEHOUSE_S3_BUCKET');
  if (bucket === undefined) {
    const alone = VARIABLES.find((name) => environment.get(name) !== undefined);
    return alone === undefined ? undefined : environment.fail(alone, 'needs GATEHOUSE_S3_BUCKET too');
  }
  const endpoint = like(
    environment,
    'GATEHOUSE_S3_ENDPOINT',
    /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/,
    'an http or https URL',
  );
  const pathStyle = like(environment, 'GATEHOUSE_S3_PATH_STYLE', /^(?:on|off)$/, 'on or off');
  const accessKeyId = like(environment, 'GATEHOUSE_S3_ACCESS_KEY_ID', CREDENTIAL, 'a text without spaces');
  const secretAccessKey = environment.credential('GATEHOUSE_S3_SECRET_ACCESS_KEY');
  if ((accessKeyId === undefined) !== (secretAccessKey === null)) {
    environment.fail('GATEHOUSE_S3_ACCESS_KEY_ID', 'and GATEHOUSE_S3_SECRET_ACCESS_KEY must be set together');
  }
  return {
    bucket: like(environment, 'GATEHOUSE_S3_BUCKET', BUCKET, BUCKET_FORM) ?? bucket,
    region: like(environment, 'GATEHOUSE_S3_REGION', REGION, REGION_FORM),
    endpoint: endpoint?.replace(/\/+$/, '') ?? null,
    prefix: like(environment, 'GATEHOUSE_S3_PREFIX', PREFIX, PREFIX_FORM) ?? '',
    pathStyle: pathStyle === undefined ? undefined : pathStyle === 'on',
    keys: accessKeyId === undefined || secretAccessKey === null ? null : { accessKeyId, secretAccessKey },
  };
}

function like(environment: Environment, name: string, pattern: RegExp, form: string): string | undefined {
  const value = environment.get(name);
  return value === undefined || pattern.test(value) ? value : environment.fail(name, `must be ${form}`);
}
