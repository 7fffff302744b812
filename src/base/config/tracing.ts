/** Where traces of the gateway go: the variables that OpenTelemetry defines for all its SDKs. */
import { Secret } from '../secret.ts';
import type { Environment } from './environment.ts';

export interface TracingSettings {
  url: string;
  headers: Readonly<Record<string, Secret>>;
  encoding: 'protobuf' | 'json';
  timeoutMs: number;
  sampler: Sampler;
  /** Whether trace context is taken from clients and given to upstreams. */
  propagates: boolean;
  /** Attributes of the service. */
  resource: Readonly<Record<string, string>>;
}

interface Sampler {
  /** The client's trace decides, if there is one. */
  parentBased: boolean;
  /** Of traces without such a parent. */
  ratio: number;
}

const PREFIX = 'OTEL_EXPORTER_OTLP';
const ENDPOINT = `${PREFIX}_ENDPOINT`;
const TRACES_ENDPOINT = `${PREFIX}_TRACES_ENDPOINT`;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/i;
const HEADER_VALUE = /^[\x20-\x7e]{0,4096}$/;
const MOST_TIMEOUT_MS = 60_000;

/** Null: off, which is the default. Nothing else is read then. */
export function readTracing(environment: Environment): TracingSettings | null {
  const url = urlOf(environment);
  if (url === undefined || environment.text('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null;
  const exporter = environment.text('OTEL_TRACES_EXPORTER');
  if (exporter === 'none') return null;
  if (exporter !== 'otlp') environment.fail('OTEL_TRACES_EXPORTER', 'must be otlp or none');
  return {
    url,
    headers: headersOf(environment),
    encoding: encodingOf(environment),
    timeoutMs: timeoutOf(environment),
    sampler: samplerOf(environment),
    propagates: propagates(environment),
    resource: resourceOf(environment),
  };
}

/** The variable for traces alone, else the one for all signals. */
function either(environment: Environment, ending: string): { name: string; value: string } {
  const own = `${PREFIX}_TRACES_${ending}`;
  const value = environment.get(own);
  if (value !== undefined) return { name: own, value };
  const name = `${PREFIX}_${ending}`;
  return { name, value: environment.text(name) };
}

function urlOf(environment: Environment): string | undefined {
  const own = environment.get(TRACES_ENDPOINT);
  const base = environment.get(ENDPOINT);
  const [name, given] = own === undefined ? [ENDPOINT, base] : [TRACES_ENDPOINT, own];
  if (given === undefined) return undefined;
  const url = URL.parse(given);
  const plain = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!plain) return environment.fail(name, 'must be an http or https URL without a user or password');
  if (own === undefined) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`;
  return url.href;
}

function headersOf(environment: Environment): Record<string, Secret> {
  const { name: variable, value } = either(environment, 'HEADERS');
  const headers: Record<string, Secret> = {};
  for (const [name, text] of pairs(environment, variable, value)) {
    if (HEADER_NAME.test(name) && HEADER_VALUE.test(text)) headers[name.toLowerCase()] = new Secret(text);
    else environment.fail(variable, 'has a name or value that cannot be a header');
  }
  return headers;
}

function encodingOf(environment: Environment): TracingSettings['encoding'] {
  const { name, value } = either(environment, 'PROTOCOL');
  if (value === 'http/protobuf') return 'protobuf';
  if (value === 'http/json') return 'json';
  return environment.fail(name, 'must be http/protobuf or http/json') ?? 'protobuf';
}

function timeoutOf(environment: Environment): number {
  const { name, value } = either(environment, 'TIMEOUT');
  const ms = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (ms < 1 || ms > MOST_TIMEOUT_MS) environment.fail(name, `must be an integer from 1 to ${MOST_TIMEOUT_MS}`);
  return ms;
}

function samplerOf(environment: Environment): Sampler {
  const name = environment.text('OTEL_TRACES_SAMPLER');
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined) {
    const accepted = 'always_on, always_off or traceidratio, each also with the prefix parentbased_';
    environment.fail('OTEL_TRACES_SAMPLER', `must be ${accepted}`);
  }
  const share = environment.text('OTEL_TRACES_SAMPLER_ARG');
  const ratio = /^(?:0|1|0?\.\d{1,12}|1\.0+|0\.0+)$/.test(share) ? Number(share) : undefined;
  if (kind === 'traceidratio' && ratio === undefined)
    environment.fail('OTEL_TRACES_SAMPLER_ARG', 'must be a share from 0 to 1');
  return {
    parentBased: parent !== undefined,
    ratio: kind === 'always_on' ? 1 : kind === 'always_off' ? 0 : (ratio ?? 0),
  };
}

function propagates(environment: Environment): boolean {
  const names = environment.text('OTEL_PROPAGATORS').split(',');
  const known = names.every((name) => ['tracecontext', 'baggage', 'none'].includes(name.trim()));
  if (!known) environment.fail('OTEL_PROPAGATORS', 'must be a list of tracecontext and baggage, or none');
  return names.some((name) => name.trim() === 'tracecontext');
}

function resourceOf(environment: Environment): Record<string, string> {
  const variable = 'OTEL_RESOURCE_ATTRIBUTES';
  const given = Object.fromEntries(pairs(environment, variable, environment.get(variable) ?? ''));
  const service = environment.get('OTEL_SERVICE_NAME');
  return { ...given, ...(service !== undefined && { 'service.name': service }) };
}

/** `name=value,name=value` with percent-encoded values. Problems never show a value. */
function pairs(environment: Environment, variable: string, list: string): [string, string][] {
  const found: [string, string][] = [];
  for (const [index, item] of list.split(',').entries()) {
    const equals = item.indexOf('=');
    if (item.trim() === '') continue;
    try {
      if (equals < 1) throw new URIError('there is no name');
      found.push([item.slice(0, equals).trim(), decodeURIComponent(item.slice(equals + 1).trim())]);
    } catch {
      environment.fail(variable, `must be a list of name=value: entry ${index + 1} is not`);
    }
  }
  return found;
}
