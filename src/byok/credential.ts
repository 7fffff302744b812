/** BYOK credentials as customers enter them: validated like those of the configuration, and masked for display. */
import { createPrivateKey } from 'node:crypto';
import { maskToken } from '../access/index.ts';
import { CREDENTIAL } from '../base/config/provider-readers.ts';
import { invalidField } from '../base/errors.ts';
import { optionProblem, type ProviderKind } from '../providers/index.ts';

export interface Credential {
  /** In the format that the configuration uses for this provider kind. */
  value: string;
  label: string;
}

const READERS: Record<NonNullable<ProviderKind['byokDocument']>, (text: string) => Credential> = {
  'google-account': readAccount,
  'aws-keys': readAwsKeys,
  'azure-key': readAzureKey,
};
const GOOGLE = 'googleapis.com';
/** Members that are kept in addition to the secrets; all others are dropped. */
const ACCOUNT_MEMBERS = ['project_id', 'private_key_id', 'client_id', 'region'] as const;

/** Throws GatewayError 400 for `key`; its message never contains a part of `text`. */
export function readCredential(kind: ProviderKind, text: string): Credential {
  const credential = credentialIn(kind, text);
  const problem = optionProblem(kind, credential.value);
  if (problem !== undefined) throw invalidField('key', problem);
  return credential;
}

function credentialIn(kind: ProviderKind, text: string): Credential {
  const trimmed = text.trim();
  if (trimmed === '') throw invalidField('key', 'must not be blank');
  if (kind.credentialDocument || /^[{[]/.test(trimmed)) {
    if (kind.byokDocument !== undefined) return READERS[kind.byokDocument](trimmed);
    throw invalidField('key', `must be the plain key that ${kind.name} accepts in a header, not a document`);
  }
  if (!CREDENTIAL.test(trimmed)) throw notForHeader();
  return { value: trimmed, label: maskToken(trimmed) };
}

/**
 * A service account key file. Other Google credential documents name files and URLs of the machine that signs in, which
 * a customer must not control.
 */
function readAccount(text: string): Credential {
  const document = parse(text);
  if (document['type'] !== 'service_account') {
    throw invalidField('key', 'must be the key file of a service account: its type must be service_account');
  }
  const universe = document['universe_domain'];
  if (universe !== undefined && universe !== GOOGLE)
    throw invalidField('key', `has an unsupported universe_domain: it must be ${GOOGLE}`);
  const [email, key] = [member(document, 'client_email'), member(document, 'private_key')];
  try {
    createPrivateKey(key);
  } catch {
    throw invalidField('key', 'has an invalid private_key: it must be in PEM format, with line breaks');
  }
  const others = ACCOUNT_MEMBERS.flatMap((name) =>
    document[name] === undefined ? [] : [[name, member(document, name)]],
  );
  const account = { type: 'service_account', client_email: email, private_key: key, ...Object.fromEntries(others) };
  return { value: JSON.stringify(account), label: masked(email) };
}

/** AWS keys, with the member names of AWS tools or in snake case; or a Bedrock API key with its region. */
function readAwsKeys(text: string): Credential {
  const document = parse(text);
  const named = (long: string, short: string) => member(document, document[long] === undefined ? short : long, long);
  const region = document['region'] === undefined ? undefined : member(document, 'region');
  if (document['apiKey'] !== undefined || document['api_key'] !== undefined) {
    const apiKey = named('apiKey', 'api_key');
    if (!CREDENTIAL.test(apiKey)) throw notForHeader();
    return { value: JSON.stringify({ apiKey, region }), label: maskToken(apiKey) };
  }
  const accessKeyId = named('accessKeyId', 'access_key_id');
  const secretAccessKey = named('secretAccessKey', 'secret_access_key');
  const session = document['sessionToken'] ?? document['session_token'];
  const sessionToken = session === undefined ? undefined : named('sessionToken', 'session_token');
  const value = JSON.stringify({ accessKeyId, secretAccessKey, sessionToken, region });
  for (const one of [accessKeyId, secretAccessKey, sessionToken]) {
    if (one !== undefined && !CREDENTIAL.test(one)) throw notForHeader();
  }
  return { value, label: masked(accessKeyId) };
}

/** Host names of Azure resources, in all Azure clouds. */
const AZURE_HOST =
  /^[a-z0-9][a-z0-9-]*\.(openai|cognitiveservices|services\.ai)\.azure\.(com|us|cn)$|^[a-z0-9-]+\.api\.cognitive\.microsoft\.com$/;
const AZURE_PATH = /^\/(openai(\/v1|\/deployments\/[\w.-]+)?|models)?\/?$/;

/** A key of the customer's own Azure resource, with the resource's URL. The key is only sent to Azure hosts. */
function readAzureKey(text: string): Credential {
  const document = parse(text);
  const api_key = member(document, 'api_key');
  if (!CREDENTIAL.test(api_key)) throw notForHeader();
  const address = URL.parse(member(document, 'endpoint'));
  const plain = address !== null && address.protocol === 'https:' && address.port === '' && address.search === '';
  const fits = plain && address.username === '' && address.password === '' && address.hash === '';
  if (!fits || !AZURE_HOST.test(address.hostname) || !AZURE_PATH.test(address.pathname)) {
    throw invalidField('key', 'has an invalid endpoint: it must be the https URL of an Azure resource');
  }
  const endpoint = address.href.replace(/\/$/, '');
  const version = document['api_version'] === undefined ? undefined : member(document, 'api_version');
  return { value: JSON.stringify({ api_key, endpoint, api_version: version }), label: maskToken(api_key) };
}

/** The secret parts of a credential value. */
export function secretsIn(value: string): string[] {
  if (!value.startsWith('{')) return [value];
  const { private_key, secretAccessKey, sessionToken, apiKey, api_key } = JSON.parse(value) as Record<string, string>;
  return [private_key, secretAccessKey, sessionToken, apiKey, api_key].filter((secret) => secret !== undefined);
}

function parse(text: string): Record<string, unknown> {
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) {
      return document as Record<string, unknown>;
    }
  } catch {
    // Do not pass on the parser's message: it quotes the text.
  }
  throw invalidField('key', 'must be a JSON document with the members of a key file');
}

function member(document: Record<string, unknown>, name: string, shown = name): string {
  const value = document[name];
  if (typeof value === 'string' && value !== '') return value;
  throw invalidField('key', `must be a document whose member ${shown} is a non-empty string`);
}

function notForHeader() {
  return invalidField(
    'key',
    'must have at most 8192 characters, without spaces and control characters, because it is sent in a header',
  );
}

/** Masks an address or id, keeping enough of both ends to recognize it. */
function masked(text: string): string {
  return text.length < 12 ? '...' : `${text.slice(0, 4)}...${text.slice(-4)}`;
}
