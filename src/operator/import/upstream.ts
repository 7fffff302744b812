/** The provider of a deployment: its kind, address, credential and options, and the upstream's name of the model. */
import { headerProblem } from '../../base/config/header-reader.ts';
import { KINDS } from '../../providers/index.ts';
import type { ProviderDraft } from './deployments.ts';
import type { Findings, Path } from './findings.ts';
import type { Service } from './service-kinds.ts';
import { isMembers, type Members, reference, type Values, variableOf } from './values.ts';

interface Wanted {
  service: Service;
  /** LiteLLM's name of the service. */
  prefix: string;
  /** LiteLLM's name of the model, without the service. */
  model: string;
  params: Members;
  at: Path;
  values: Values;
  findings: Findings;
}

interface Upstream {
  provider: ProviderDraft;
  upstream: string;
  author: string;
}

/** Undefined if the gateway cannot reach it; then it is a finding. */
export function upstreamOf(wanted: Wanted): Upstream | undefined {
  const { service, params, at, findings } = wanted;
  const base = params['api_base'] ?? params['base_url'];
  if (service.needsBase && (base === undefined || base === null) && wanted.prefix !== 'azure_ai') {
    return void findings.lacks(
      [...at, 'model'],
      'names a service without an address: the entry needs an api_base and is not imported',
    );
  }
  if (typeof base === 'string' && variableOf(base) === undefined && !/^https?:\/\/[^/]/i.test(base)) {
    const member = params['api_base'] === base ? 'api_base' : 'base_url';
    return void findings.lacks([...at, member], 'is not an http or https URL; the entry is not imported');
  }
  switch (service.kind) {
    case 'bedrock':
      return bedrock(wanted);
    case 'vertex':
      return vertex(wanted);
    case 'azure':
      return azure(wanted);
    default:
      return usual(wanted);
  }
}

function usual(wanted: Wanted): Upstream | undefined {
  const { service, prefix, model, at, params, values } = wanted;
  const place = [...at, params['api_base'] === undefined ? 'base_url' : 'api_base'];
  const given = values.address(params['api_base'] ?? params['base_url'], place);
  const standard = KINDS.find(({ id }) => id === service.kind)?.baseUrl;
  const address = given === undefined ? service.baseUrl : addressOf(given, service.kind);
  const baseUrl = address === standard ? undefined : address;
  // Another server of OpenAI's format rarely has OpenAI's newer parameters.
  const kind = service.kind === 'openai' && baseUrl !== undefined ? 'chat' : service.kind;
  const provider: ProviderDraft = {
    kind,
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...credential(wanted),
    ...headers(wanted),
  };
  return { provider, upstream: model, author: authorOf(kind, prefix) };
}

/** LiteLLM adds the version to these addresses itself. */
const VERSIONS: Readonly<Record<string, string>> = { anthropic: '/v1', ollama: '/v1', cohere: '/v2' };

function addressOf(given: string, kind: string): string {
  const plain = given.replace(/\/+$/, '');
  const version = VERSIONS[kind];
  return version === undefined || /\/v\d[^/]*$/.test(plain) ? plain : plain + version;
}

function authorOf(kind: string, prefix: string): string {
  return KINDS.find(({ id }) => id === kind)?.author ?? prefix.replace(/[^A-Za-z0-9-]/g, '-');
}

/** From the entry, otherwise from the variable that LiteLLM reads, unless the gateway reads the same variable anyway. */
function credential({ service, params, at, values }: Wanted): Members {
  const variable = service.keyVariable;
  const given = values.secret(params['api_key'], `LITELLM_${variable ?? 'API_KEY'}`, [...at, 'api_key']);
  if (given !== undefined) return { api_key: given };
  if (variable === undefined) return {};
  const known = KINDS.find(({ id }) => id === service.kind);
  const own = known?.environment === variable || (known?.alsoEnvironment?.includes(variable) ?? false);
  const elsewhere = params['api_base'] !== undefined || params['base_url'] !== undefined;
  return own && !elsewhere ? {} : { api_key: reference(variable) };
}

const SECRET_HEADER = /auth|credential|cookie|jwt|key|passw|secret|session|signature|token/i;

function headers({ params, at, values, findings }: Wanted): Members {
  const made: Members = {};
  const organization = values.text(params['organization'], [...at, 'organization']);
  if (organization !== undefined) made['OpenAI-Organization'] = organization;
  for (const member of ['default_headers', 'extra_headers']) {
    const given = params[member];
    if (!isMembers(given)) {
      if (given !== undefined && given !== null) findings.lacks([...at, member], 'is not a mapping');
      continue;
    }
    for (const [name, value] of Object.entries(given)) {
      const path = [...at, member, name];
      const problem = headerProblem(name, value);
      if (problem !== undefined) {
        findings.lacks(path, problem);
        continue;
      }
      const text = SECRET_HEADER.test(name)
        ? values.secret(value, `LITELLM_HEADER_${name.toUpperCase().replace(/\W/g, '_')}`, path)
        : values.text(value, path);
      if (text !== undefined) made[name] = text;
    }
  }
  return Object.keys(made).length === 0 ? {} : { headers: made };
}

function azure(wanted: Wanted): Upstream | undefined {
  const { prefix, model, params, at, values, findings } = wanted;
  const foundry = prefix === 'azure_ai';
  const given = values.address(params['api_base'], [...at, 'api_base']);
  const endpoint = given ?? reference(foundry ? 'AZURE_AI_API_BASE' : 'AZURE_API_BASE');
  const token = values.secret(params['azure_ad_token'], 'LITELLM_AZURE_AD_TOKEN', [...at, 'azure_ad_token']);
  const access = token === undefined ? credential(wanted) : { api_key: token };
  if (foundry && model.startsWith('claude')) return claudeOnAzure(wanted, endpoint, access);
  const version = values.text(params['api_version'], [...at, 'api_version']);
  const literal = variableOf(params['api_base'] ?? 'os.environ/X') === undefined;
  const plain = endpoint.replace(/\/+$/, '');
  // The kind recognizes the resource, its v1 API and its deployments by their addresses.
  const address: Members = literal && /\/(openai|models)(\/|$)/.test(plain) ? { base_url: plain } : { endpoint: plain };
  if (version === undefined && !foundry) {
    findings.differs(at, 'has no api_version: the gateway calls the v1 API of the resource');
  }
  return {
    provider: {
      kind: 'azure',
      ...address,
      ...(version !== undefined && { api_version: version }),
      ...access,
      ...headers(wanted),
    },
    upstream: model,
    author: 'azure',
  };
}

/** Claude in a Foundry resource has the messages format at an address of its own. */
function claudeOnAzure({ model }: Wanted, endpoint: string, access: Members): Upstream {
  const plain = endpoint.replace(/\/+$/, '').replace(/\/v1(\/messages)?$/, '');
  const base = /\/anthropic$/.test(plain) ? `${plain}/v1` : `${plain}/anthropic/v1`;
  return { provider: { kind: 'messages', base_url: base, ...access }, upstream: model, author: 'anthropic' };
}

/** LiteLLM's routes to a model of Bedrock, and a region, before its id. */
const BEDROCK_ROUTE = /^(converse|converse_like|invoke|async_invoke|[a-z]{2}(-[a-z]+)+-\d)\//;
const OTHER_ROUTE = /^(agent|agentcore|mantle|llama|deepseek_r1|openai|nova)\//;

function bedrock({ model, params, at, values, findings }: Wanted): Upstream | undefined {
  let id = model;
  let region = values.text(params['aws_region_name'], [...at, 'aws_region_name']);
  for (let route = BEDROCK_ROUTE.exec(id); route !== null; route = BEDROCK_ROUTE.exec(id)) {
    if (/-\d$/.test(route[1]!)) region ??= route[1]!;
    id = id.slice(route[0].length);
  }
  if (OTHER_ROUTE.test(id)) {
    return void findings.lacks(
      [...at, 'model'],
      'uses a route to Bedrock that has no counterpart; the entry is not imported',
    );
  }
  const profile = values.text(params['aws_profile_name'], [...at, 'aws_profile_name']);
  const runtime = values.address(params['aws_bedrock_runtime_endpoint'], [...at, 'aws_bedrock_runtime_endpoint']);
  const role = values.text(params['aws_batch_role_arn'], [...at, 'aws_batch_role_arn']);
  const bucket = values.text(params['s3_bucket_name'], [...at, 's3_bucket_name']);
  return {
    provider: {
      kind: 'bedrock',
      region: region ?? reference('AWS_REGION'),
      ...(profile !== undefined && { profile }),
      ...(runtime !== undefined && { base_url: runtime }),
      ...(role !== undefined && bucket !== undefined && { batch_bucket: `s3://${bucket}`, batch_role: role }),
      ...awsKeys(params, at, values),
    },
    upstream: id,
    author: 'bedrock',
  };
}

/** AWS keys as the one credential that the kind takes; without them the standard chain of AWS is used, as in LiteLLM. */
function awsKeys(params: Members, at: Path, values: Values): Members {
  const bearer = values.secret(params['api_key'], 'LITELLM_BEDROCK_API_KEY', [...at, 'api_key']);
  if (bearer !== undefined) return { api_key: bearer };
  const part = (member: string, name: string) => values.secret(params[member], name, [...at, member]);
  const accessKeyId = part('aws_access_key_id', 'LITELLM_AWS_ACCESS_KEY_ID');
  const secretAccessKey = part('aws_secret_access_key', 'LITELLM_AWS_SECRET_ACCESS_KEY');
  const sessionToken = part('aws_session_token', 'LITELLM_AWS_SESSION_TOKEN');
  if (accessKeyId === undefined || secretAccessKey === undefined) return {};
  const keys = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
  return { api_key: JSON.stringify(keys) };
}

function vertex(wanted: Wanted): Upstream {
  const { model, params, at, values } = wanted;
  const project = values.text(params['vertex_project'], [...at, 'vertex_project']);
  const location = values.text(params['vertex_location'], [...at, 'vertex_location']);
  const base = values.address(params['api_base'], [...at, 'api_base']);
  return {
    provider: {
      kind: 'vertex',
      project: project ?? reference('VERTEXAI_PROJECT'),
      ...(location !== undefined && { location }),
      ...(base !== undefined && { base_url: base }),
      ...keyFile(params['vertex_credentials'], [...at, 'vertex_credentials'], wanted),
    },
    upstream: model,
    author: model.startsWith('claude') ? 'anthropic' : 'google',
  };
}

/** LiteLLM takes the path of a key file, or its content. */
function keyFile(given: Members[string] | undefined, at: Path, { values, findings }: Wanted): Members {
  const content = isMembers(given) || (typeof given === 'string' && given.trimStart().startsWith('{'));
  if (content) {
    const secret = values.secret(given, 'LITELLM_VERTEX_CREDENTIALS', at);
    return secret === undefined ? {} : { api_key: secret };
  }
  const path = values.text(given, at);
  if (variableOf(given) !== undefined) {
    findings.differs(
      at,
      'is read as the path of a key file; if the variable holds the content of the file, use api_key',
    );
  }
  return path === undefined ? {} : { key_file: path };
}
