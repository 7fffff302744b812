/** `gatehouse import`: a configuration of another gateway as a `gatehouse.yaml`. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { SHIPPED_FACTS } from '../catalog/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { counted, type Finding, printable } from './import/findings.ts';
import { fromLitellm, type Imported } from './import/litellm.ts';
import { readAs } from './import/read-file.ts';
import { importGuardrailsCommand } from './import-guardrails.ts';
import { importKeysCommand } from './import-keys.ts';

export const IMPORT_HELP = `gatehouse import litellm FILE [--output FILE] [--secrets FILE] [--force]
    writes a gatehouse.yaml for a configuration of LiteLLM's proxy, and lists what it does not take over. os.environ/NAME
    becomes \${NAME}. Literal secrets are moved to the file that --secrets names; without it they are refused. --force
    overwrites existing files
gatehouse import litellm-keys FILE... [--config FILE]
    writes the keys and teams of LiteLLM's proxy to the database, and lists what it does not take over. Clients keep their
    keys. The files are JSON of GET /key/list?return_full_object=true and GET /team/list, or of the tables with keys and
    teams. --config names LiteLLM's configuration, for names of models that have other ids here
gatehouse import litellm-guardrails FILE
    writes the guardrails of a configuration of LiteLLM's proxy to the database, and lists what it does not take over. Those
    with default_on are added to the default guardrail of every workspace that exists; run the command again for workspaces
    that are created later. The others are assigned to nothing`;

export async function importCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const { out } = parts;
  const [source, ...rest] = args;
  const print = (title: string, findings: readonly Finding[]) => list(title, findings, (line) => out.print(line));
  if (source === 'litellm-keys') return importKeysCommand(rest, parts, print);
  if (source === 'litellm-guardrails') return importGuardrailsCommand(rest, parts, print);
  if (source !== 'litellm') {
    throw new UsageError(source === undefined ? 'say what to import' : `unknown: import ${source}`);
  }
  const options = { output: { type: 'string' }, secrets: { type: 'string' }, force: { type: 'boolean' } } as const;
  const { values, positionals } = parseArguments(rest, options, true);
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new UsageError('name one configuration file');
  const output = (values['output'] as string | undefined) ?? 'gatehouse.yaml';
  const secretsFile = values['secrets'] as string | undefined;
  if (secretsFile !== undefined && resolve(secretsFile) === resolve(output)) {
    throw new UsageError('--secrets and --output must be two files');
  }
  const imported = readAs(file, (text) => fromLitellm(text, SHIPPED_FACTS));
  if (imported.variables.size > 0 && secretsFile === undefined) throw literalSecrets(imported);
  const variables = imported.variables.size > 0 ? environmentText(imported.variables) : undefined;
  if (values['force'] !== true) refuseExisting(variables === undefined ? [output] : [output, secretsFile!]);
  // The secrets first, so that a failure leaves no yaml whose variables are missing.
  if (variables !== undefined) {
    writeFileSync(secretsFile!, variables, { mode: 0o600 });
    chmodSync(secretsFile!, 0o600);
  }
  writeFileSync(output, imported.yaml);
  report(imported, { output, secretsFile }, (line) => out.print(line));
  return 0;
}

function literalSecrets({ secrets }: Imported): Error {
  const places = secrets.map(({ path, line }) => `  ${place({ path, ...(line !== undefined && { line }) })}`);
  return new Error(
    `nothing was written: the file holds secrets literally. Replace them with os.environ/NAME, or name a file for them with --secrets:\n${places.join('\n')}`,
  );
}

function refuseExisting(files: readonly string[]): void {
  const existing = files.filter((file) => existsSync(file));
  if (existing.length > 0)
    throw new Error(`nothing was written: ${existing.join(' and ')} exists; --force overwrites it`);
}

/** Lines that a shell, Node.js and a compose file read alike. */
function environmentText(variables: ReadonlyMap<string, string>): string {
  return [...variables]
    .map(([name, value]) => `${name}=${/^[\w.:/+=@-]*$/.test(value) ? value : quoted(name, value)}\n`)
    .join('');
}

function quoted(name: string, value: string): string {
  if (/['\r\n]/.test(value)) {
    throw new Error(`nothing was written: the value of ${name} has a quote or a line break; set the variable yourself`);
  }
  return `'${value}'`;
}

function report(
  { providers, ids, variables, missing, different }: Imported,
  { output, secretsFile }: { output: string; secretsFile: string | undefined },
  print: (line: string) => void,
): void {
  print(`${output}: ${counted(providers, 'provider')}, ${counted(ids.size, 'model')}`);
  if (variables.size > 0) print(`${secretsFile}: ${counted(variables.size, 'variable')}`);
  for (const [name, id] of ids) if (name !== id) print(`  ${printable(name)} is ${id}, and an alias of it`);
  list('works differently:', different, print);
  list('not imported:', missing, print);
}

function list(title: string, findings: readonly Finding[], print: (line: string) => void): void {
  if (findings.length === 0) return;
  print(title);
  for (const finding of findings) print(`  ${place(finding)} ${finding.message}`);
}

function place({ path, line }: Pick<Finding, 'path' | 'line'>): string {
  return line === undefined ? path : `line ${line}: ${path}`;
}
