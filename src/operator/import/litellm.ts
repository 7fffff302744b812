/** A configuration of LiteLLM's proxy as a `gatehouse.yaml`. Pure: reads and writes no file. */
import { LineCounter, parseDocument, stringify } from 'yaml';
import type { Facts } from '../../catalog/index.ts';
import { deploymentOf } from './deployments.ts';
import { type Finding, Findings, type Path } from './findings.ts';
import { modelsOf } from './models.ts';
import { readSettings, type Sections } from './settings.ts';
import { isMembers, type Json, type Members, Secrets, Values, variableOf } from './values.ts';

export interface Imported {
  /** The text of the yaml file. */
  yaml: string;
  providers: number;
  /** Ids in the gateway by LiteLLM's model names, without wildcards. */
  ids: ReadonlyMap<string, string>;
  /** Literal secrets and variables of the file, by the variables that stand for them in the yaml. */
  variables: ReadonlyMap<string, string>;
  missing: readonly Finding[];
  different: readonly Finding[];
  /** Where the file holds a secret literally. */
  secrets: readonly Finding[];
}

/** The file is no configuration of LiteLLM. */
export class ImportError extends Error {}

const SETTINGS = ['router_settings', 'litellm_settings', 'general_settings'];
const MOST_MODELS = 5_000;

export function fromLitellm(text: string, facts: Facts): Imported {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const findings = new Findings(document, lines);
  const content: unknown = document.toJS({ maxAliasCount: 100 });
  if (!isMembers(content)) throw new ImportError('the file is not a mapping');
  const entries = content['model_list'] ?? [];
  if (!Array.isArray(entries)) throw new ImportError('model_list is not a list');
  if (entries.length > MOST_MODELS) throw new ImportError(`model_list has more than ${MOST_MODELS} entries`);
  const secrets = new Secrets(findings);
  const values = new Values(findings, secrets);
  const credentials = credentialsOf(content['credential_list'], findings);
  const deployments = entries.flatMap((entry, index) => {
    return deploymentOf(entry, ['model_list', index], { values, findings, facts, credentials }) ?? [];
  });
  const { providers, ids } = modelsOf(deployments, findings);
  const sections = sectionsOf(content, findings, ids);
  for (const provider of providers) complete(provider, sections, ids);
  const variables = new Map([...environmentOf(content['environment_variables'], findings), ...secrets.byVariable]);
  return {
    yaml: written(providers, sections),
    providers: providers.length,
    ids,
    variables,
    missing: findings.sorted().missing,
    different: findings.different,
    secrets: findings.secrets,
  };
}

/** @throws ImportError that does not quote the file */
export function parsed(text: string, lines: LineCounter) {
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
    const [error] = document.errors;
    // The parser's own message may quote the file, which may hold a secret.
    if (error !== undefined)
      throw new ImportError(`line ${lines.linePos(error.pos[0]).line} is not valid YAML (${error.code})`);
    return document;
  } catch (error) {
    throw error instanceof ImportError ? error : new ImportError('the file is nested too deeply to be read');
  }
}

/** `credential_list`: parameters that entries of the model list name. */
function credentialsOf(list: Json | undefined, findings: Findings): Map<string, Members> {
  const credentials = new Map<string, Members>();
  for (const [index, entry] of (Array.isArray(list) ? list : []).entries()) {
    const { credential_name: name = null, credential_values: values = null } = isMembers(entry) ? entry : {};
    if (typeof name === 'string' && isMembers(values)) credentials.set(name, values);
    else findings.lacks(['credential_list', index], 'has no credential_name or no credential_values');
  }
  return credentials;
}

function sectionsOf(content: Members, findings: Findings, ids: ReadonlyMap<string, string>): Sections {
  const sections: Sections = {
    routing: { fallbacks: {} },
    timeout: undefined,
    account: {},
    aliases: new Map(),
  };
  const idOf = (name: string) => ids.get(name);
  for (const name of SETTINGS) readSettings(content[name] ?? null, [name], sections, { findings, idOf });
  const read = new Set(['model_list', 'credential_list', 'environment_variables', ...SETTINGS]);
  for (const [name, value] of Object.entries(content)) {
    if (!read.has(name)) listSection(name, value, findings);
  }
  return sections;
}

const SECTIONS: Readonly<Record<string, string>> = {
  guardrails: 'is not part of the yaml: gatehouse import litellm-guardrails writes it to the database',
  mcp_servers: 'has no counterpart: requests name MCP servers themselves (docs/guides/server-tools.md)',
  search_tools: 'has no counterpart by this name: see web_search',
  include: 'names further files; import each of them',
  files_settings: 'has no counterpart: files are stored by the gateway',
  finetune_settings: 'has no counterpart',
};

/** Lists each entry, so that none is missed. */
function listSection(name: string, value: Json, findings: Findings): void {
  const message = SECTIONS[name] ?? 'has no counterpart';
  const entries = Array.isArray(value) && value.length > 0 ? value.keys() : undefined;
  if (entries === undefined) findings.lacks([name], message);
  else for (const index of entries) findings.lacks([name, index], message);
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** `environment_variables`, which LiteLLM sets itself. */
function environmentOf(given: Json | undefined, findings: Findings): [string, string][] {
  if (!isMembers(given)) return [];
  return Object.entries(given).flatMap(([name, value]): [string, string][] => {
    const path: Path = ['environment_variables', name];
    if (value === null || variableOf(value) !== undefined) return [];
    if (!VARIABLE.test(name) || typeof value === 'object') {
      findings.lacks(path, 'is not a variable of the environment');
      return [];
    }
    findings.holdsSecret(path);
    return [[name, String(value)]];
  });
}

/** Adds the common timeout and the aliases of model groups. */
function complete(provider: Members, { timeout, aliases }: Sections, ids: ReadonlyMap<string, string>): void {
  if (timeout !== undefined) provider['timeouts'] ??= { total: timeout };
  const further = new Map([...aliases].map(([name, names]) => [ids.get(name), names]));
  for (const model of (provider['models'] ?? []) as Members[]) {
    const names = further.get(model['id'] as string) ?? [];
    const all = new Set([...((model['aliases'] ?? []) as string[]), ...names]);
    if (all.size > 0) model['aliases'] = [...all];
  }
}

function written(providers: readonly Members[], { routing, account }: Sections): string {
  const content = {
    ...(Object.keys(account).length > 0 && { account }),
    ...(Object.keys(routing.fallbacks).length > 0 && { routing }),
    ...(providers.length > 0 && { providers }),
  };
  return `# Imported from a configuration of LiteLLM by gatehouse import.\n${stringify(content, { lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })}`;
}
