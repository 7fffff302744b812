/** The member `environment` of the settings of tools that run code, and what it means. */
import { invalidField } from '../../../base/errors.ts';
import type { WantedContainer } from '../../../containers/index.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { DeclaredTool } from '../tool.ts';

/** Where the code of a tool runs. */
export interface Environment extends WantedContainer {
  /** Files of the workspace to copy in. */
  fileIds: readonly string[];
  /** How long the sandbox waits for the next request. */
  sleepAfterMs: number;
}

const NAME = /^[\w-]{1,40}$/;
const MOST_FILES = 20;
const MOST_DOMAINS = 50;
const DOMAIN = /^(?=.{1,253}$)(?:[a-z0-9_*](?:[a-z0-9_*-]{0,61}[a-z0-9_*])?\.)+[a-z0-9*](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Of a container that the client names. */
const DEFAULT_SLEEP_S = 60;
const LONGEST_SLEEP_S = 3_600;

/** @throws GatewayError 400 with the path of a member that is not valid */
export function checkEnvironment(environment: unknown, path: string): void {
  if (environment === undefined || environment === null) return;
  if (!isFields(environment)) throw invalidField(path, 'must be an object');
  const { type } = environment;
  if (type === 'container_reference') {
    if (!NAME.test(textOf(environment['container_id']))) {
      throw invalidField(`${path}.container_id`, 'must be 1 to 40 letters, digits, "_" and "-"');
    }
  } else if (type !== 'container_auto') {
    throw invalidField(`${path}.type`, 'must be container_auto or container_reference');
  }
  checkFileIds(environment['file_ids'] ?? [], `${path}.file_ids`);
  checkPolicy(environment['network_policy'] ?? undefined, `${path}.network_policy`);
}

function checkFileIds(ids: unknown, path: string): void {
  if (!Array.isArray(ids) || ids.length > MOST_FILES) {
    throw invalidField(path, `must be a list of at most ${MOST_FILES} ids`);
  }
  for (const [index, id] of ids.entries()) {
    if (typeof id !== 'string' || id === '') throw invalidField(`${path}[${index}]`, 'must be the id of a file');
  }
}

function checkPolicy(policy: unknown, path: string): void {
  if (policy === undefined) return;
  if (!isFields(policy)) throw invalidField(path, 'must be an object');
  if (policy['type'] === 'disabled') return;
  if (policy['type'] !== 'allowlist') throw invalidField(`${path}.type`, 'must be disabled or allowlist');
  const domains = policy['allowed_domains'];
  if (!Array.isArray(domains) || domains.length > MOST_DOMAINS) {
    throw invalidField(`${path}.allowed_domains`, `must be a list of at most ${MOST_DOMAINS} domains`);
  }
  for (const [index, domain] of domains.entries()) {
    if (typeof domain === 'string' && (domain === '*' || DOMAIN.test(domain.toLowerCase()))) continue;
    throw invalidField(`${path}.allowed_domains[${index}]`, 'must be a domain such as example.com or *.example.com');
  }
}

/** @throws GatewayError 400 */
export function checkSleep(seconds: unknown, path: string): void {
  if (seconds === undefined || seconds === null) return;
  if (typeof seconds !== 'number' || !(seconds >= 0)) throw invalidField(path, 'must be a number of at least 0');
}

/** @param settings checked */
export function environmentOf(settings: Fields): Environment {
  const environment = fieldsOf(settings['environment']);
  const isNamed = environment['type'] === 'container_reference';
  const seconds = settings['sleep_after_seconds'] ?? (isNamed ? DEFAULT_SLEEP_S : 0);
  return {
    name: isNamed ? textOf(environment['container_id']) : undefined,
    domains: domainsOf(environment['network_policy'] ?? (isNamed ? undefined : { type: 'disabled' })),
    fileIds: listOf(environment['file_ids']).map(textOf),
    sleepAfterMs: Math.min(seconds as number, LONGEST_SLEEP_S) * 1000,
  };
}

/** The environment of a tool without one of its own: that of the command tools, if there are any. */
export function environmentBeside(declared: readonly DeclaredTool[]): Environment {
  const running = declared.find(({ name, settings }) => COMMANDS.includes(name) && settings['engine'] === 'svc');
  return environmentOf(running?.settings ?? {});
}

const COMMANDS = ['svc:bash', 'svc:shell'];

function domainsOf(policy: unknown): Environment['domains'] {
  if (policy === undefined) return undefined;
  const { type, allowed_domains: domains } = fieldsOf(policy);
  return type === 'allowlist' ? listOf(domains).map((domain) => textOf(domain).toLowerCase()) : null;
}

/** For the model. */
export function aboutEnvironment({ domains }: Environment): string {
  return `It works in a Linux sandbox ${networkOf(domains)}, in the folder /workspace.`;
}

function networkOf(domains: Environment['domains']): string {
  if (domains === undefined) return 'with little or no network';
  if (domains === null || domains.length === 0) return 'without network';
  return `that reaches only ${domains.join(', ')}, at the ports 80 and 443`;
}
