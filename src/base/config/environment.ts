/** The environment variables: one table that reading and documentation share. */
import path from 'node:path';
import { Secret } from '../secret.ts';
import type { Problem } from './problems.ts';
import { CREDENTIAL, type KindFacts } from './provider-readers.ts';
import type { KeySource, LogLevel, MetricsSettings, SealingSettings } from './settings.ts';

export interface Variable {
  name: string;
  /** As the documentation shows it; '' when there is none. */
  fallback: string;
  meaning: string;
}

/** Every variable of our own. The table in README.md is compared with this one. */
export const VARIABLES: readonly Variable[] = [
  { name: 'GATEHOUSE_HOST', fallback: '127.0.0.1', meaning: 'Address to listen on.' },
  { name: 'GATEHOUSE_PORT', fallback: '8484', meaning: 'Port to listen on; 0 lets the machine choose.' },
  { name: 'GATEHOUSE_DATA_DIR', fallback: 'data', meaning: 'Folder of the database, the journal and files.' },
  { name: 'GATEHOUSE_CONFIG', fallback: 'gatehouse.yaml', meaning: 'The yaml file; only the default may be missing.' },
  { name: 'GATEHOUSE_WORKERS', fallback: '1', meaning: 'Number of processes that serve, or `auto` for one a core.' },
  { name: 'GATEHOUSE_NAMESPACE', fallback: 'svc', meaning: 'Token that stands for our own name on the wire.' },
  { name: 'GATEHOUSE_MANAGEMENT_KEY', fallback: '', meaning: 'Becomes the management key on the first start.' },
  { name: 'GATEHOUSE_INFERENCE_KEY', fallback: '', meaning: 'Becomes the inference key on the first start.' },
  {
    name: 'GATEHOUSE_KEK_FILE',
    fallback: '',
    meaning:
      'File of the key (32 bytes in base64) that stored credentials are sealed under; default `keys/kek` in the data folder, which makes itself.',
  },
  { name: 'GATEHOUSE_KEK', fallback: '', meaning: 'That key itself, instead of a file.' },
  { name: 'GATEHOUSE_KEK_COMMAND', fallback: '', meaning: 'Command of the shell that prints that key.' },
  {
    name: 'GATEHOUSE_KEK_PREVIOUS_FILE',
    fallback: '',
    meaning: 'File of the key before it, until `gatehouse sealing rotate-key` is done.',
  },
  { name: 'GATEHOUSE_KEK_PREVIOUS', fallback: '', meaning: 'The key before it itself.' },
  { name: 'GATEHOUSE_KEK_PREVIOUS_COMMAND', fallback: '', meaning: 'Command that prints the key before it.' },
  { name: 'GATEHOUSE_TLS_CERT_FILE', fallback: '', meaning: 'Certificate chain (PEM); serves TLS with the key below.' },
  { name: 'GATEHOUSE_TLS_KEY_FILE', fallback: '', meaning: 'Private key (PEM) of the certificate.' },
  {
    name: 'GATEHOUSE_CATALOG_URL',
    fallback: 'https://models.dev/api.json',
    meaning: 'Registry that `gatehouse catalog refresh` reads.',
  },
  { name: 'GATEHOUSE_LOG_LEVEL', fallback: 'info', meaning: '`debug`, `info`, `warn` or `error`.' },
  {
    name: 'GATEHOUSE_LOG_REQUESTS',
    fallback: 'on',
    meaning: 'A log line for each request: `on`, `off`, or the share of those that went well (`0.01`).',
  },
  {
    name: 'GATEHOUSE_METRICS',
    fallback: 'key',
    meaning: 'Who may read `/metrics`: `key` (a management key, or the token below), `open` (everybody) or `off`.',
  },
  {
    name: 'GATEHOUSE_METRICS_TOKEN',
    fallback: '',
    meaning: 'A bearer token that reads `/metrics` and nothing else.',
  },
  {
    name: 'GATEHOUSE_CA_FILE',
    fallback: '',
    meaning: 'Authorities (PEM) that upstreams may be signed by, beside the usual ones.',
  },
  {
    name: 'GATEHOUSE_DISCOVERY',
    fallback: 'on',
    meaning: '`off`: model servers of this machine are not looked for, as with an external database.',
  },
  {
    name: 'HTTPS_PROXY',
    fallback: '',
    meaning: 'Proxy for https upstreams. This and the next two also in lower case.',
  },
  { name: 'HTTP_PROXY', fallback: '', meaning: 'Proxy for http upstreams.' },
  { name: 'NO_PROXY', fallback: '', meaning: 'Hosts, networks and ports that are reached without the proxy.' },
  { name: 'DATABASE_URL', fallback: '', meaning: 'An external PostgreSQL 15 or newer instead of the embedded one.' },
];

/** The table above and the providers' variables, as rows of a Markdown table. */
export function variableTable(kinds: readonly KindFacts[]): string[] {
  const own = VARIABLES.map(({ name, fallback, meaning }) => row(name, fallback, meaning));
  const theirs = kinds.flatMap(({ environment = [], alsoEnvironment = [], options = {}, name }) => [
    ...[environment, alsoEnvironment]
      .flat()
      .map((variable) => row(variable, '', `Credential of ${name}; switches it on.`)),
    ...Object.values(options).flatMap((option) =>
      (option.environment ?? []).map((variable) => row(variable, option.fallback ?? '', `${name}: ${option.meaning}`)),
    ),
  ]);
  return [...own, ...theirs];
}

function row(name: string, fallback: string, meaning: string): string {
  return `| \`${name}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${meaning} |`;
}

/** Where settings come from. `readFile` throws as `fs.readFileSync` does. */
export interface Inputs {
  env: Readonly<Record<string, string | undefined>>;
  readFile(path: string): string;
  cwd: string;
  /** Processor cores, for `GATEHOUSE_WORKERS=auto`. */
  cores?: number;
}

export class Environment {
  readonly #inputs: Inputs;
  readonly #problems: Problem[];

  constructor(inputs: Inputs, problems: Problem[]) {
    this.#inputs = inputs;
    this.#problems = problems;
  }

  fail(name: string, message: string): undefined {
    this.#problems.push({ source: name, path: '', message });
  }

  /** An empty variable is one that is not set: shells and compose files make them by accident. */
  get(name: string): string | undefined {
    const value = this.#inputs.env[name]?.trim();
    return value === '' ? undefined : value;
  }

  text(name: string): string {
    return this.get(name) ?? VARIABLES.find((variable) => variable.name === name)!.fallback;
  }

  secret(name: string): Secret | null {
    const value = this.get(name);
    return value === undefined ? null : new Secret(value);
  }

  port(): number {
    const value = this.text('GATEHOUSE_PORT');
    if (/^\d{1,5}$/.test(value) && Number(value) <= 65535) return Number(value);
    // Kubernetes sets this very variable to tcp://... in every pod when a Service is called gatehouse.
    const hint = value.startsWith('tcp://') ? ' (set by Kubernetes? then enableServiceLinks: false helps)' : '';
    return this.fail('GATEHOUSE_PORT', `must be an integer from 0 to 65535${hint}`) ?? 0;
  }

  workers(): number {
    const value = this.text('GATEHOUSE_WORKERS');
    if (value === 'auto') return this.#inputs.cores ?? 1;
    if (/^\d{1,3}$/.test(value) && Number(value) >= 1 && Number(value) <= 256) return Number(value);
    return this.fail('GATEHOUSE_WORKERS', 'must be an integer from 1 to 256, or auto') ?? 1;
  }

  namespace(): string {
    const value = this.text('GATEHOUSE_NAMESPACE');
    if (/^[a-z][a-z0-9]{0,31}$/.test(value)) return value;
    return this.fail('GATEHOUSE_NAMESPACE', 'must be lower-case letters and digits, the first one a letter') ?? '';
  }

  logLevel(): LogLevel {
    const value = this.text('GATEHOUSE_LOG_LEVEL');
    if (value === 'debug' || value === 'info' || value === 'warn' || value === 'error') return value;
    return this.fail('GATEHOUSE_LOG_LEVEL', 'must be debug, info, warn or error') ?? 'info';
  }

  /** Share of the requests that went well that the log has a line for; null: it has none for any request. */
  requestLogShare(): number | null {
    const value = this.text('GATEHOUSE_LOG_REQUESTS');
    if (value === 'on') return 1;
    if (value === 'off') return null;
    if (/^(0?\.\d{1,9}|0|1)$/.test(value)) return Number(value);
    return this.fail('GATEHOUSE_LOG_REQUESTS', 'must be on, off, or a share such as 0.01') ?? null;
  }

  metrics(): MetricsSettings {
    const access = this.text('GATEHOUSE_METRICS');
    const token = this.get('GATEHOUSE_METRICS_TOKEN');
    if (token !== undefined && (!CREDENTIAL.test(token) || token.length < 24)) {
      this.fail('GATEHOUSE_METRICS_TOKEN', 'must be 24 or more characters without spaces');
    }
    const secret = token === undefined ? null : new Secret(token);
    if (access === 'key' || access === 'open' || access === 'off') return { access, token: secret };
    return this.fail('GATEHOUSE_METRICS', 'must be key, open or off') ?? { access: 'off', token: secret };
  }

  catalogUrl(): string {
    const value = this.text('GATEHOUSE_CATALOG_URL');
    const url = URL.parse(value);
    const plain = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
    if (!plain) this.fail('GATEHOUSE_CATALOG_URL', 'must be an http or https URL without a user or password');
    return value;
  }

  databaseUrl(): Secret | null {
    const value = this.get('DATABASE_URL');
    if (value === undefined) return null;
    if (!/^postgres(ql)?:\/\//.test(value)) this.fail('DATABASE_URL', 'must begin with postgres:// or postgresql://');
    return new Secret(value);
  }

  /** A first key; long enough that it cannot be guessed, since only its hash protects it. */
  firstKey(name: string): Secret | null {
    const value = this.get(name);
    if (value === undefined) return null;
    if (!CREDENTIAL.test(value) || value.length < 24) this.fail(name, 'must be 24 or more characters without spaces');
    return new Secret(value);
  }

  /** Whether the keys fit is told by who reads them. */
  sealing(dataDir: string): SealingSettings {
    const usual: KeySource = { kind: 'file', path: path.join(dataDir, 'keys', 'kek') };
    return { current: this.#keySource('GATEHOUSE_KEK') ?? usual, previous: this.#keySource('GATEHOUSE_KEK_PREVIOUS') };
  }

  #keySource(variable: string): KeySource | null {
    const [fileName, commandName] = [`${variable}_FILE`, `${variable}_COMMAND`];
    const [key, file, command] = [this.secret(variable), this.get(fileName), this.get(commandName)];
    const sources: KeySource[] = [];
    if (key !== null) sources.push({ kind: 'value', variable, key });
    if (file !== undefined) {
      sources.push({ kind: 'file', variable: fileName, path: path.resolve(this.#inputs.cwd, file) });
    }
    if (command !== undefined) sources.push({ kind: 'command', variable: commandName, command });
    if (sources.length > 1) {
      const [first, ...others] = sources.map((source) => source.variable!);
      this.fail(first!, `and ${others.join(' and ')} are set together; only one may be`);
    }
    return sources[0] ?? null;
  }

  /** The credential of a provider: `X`, or the content of the file that `X_FILE` names. */
  credential(name: string): Secret | null {
    const direct = this.get(name);
    const file = this.get(`${name}_FILE`);
    if (direct !== undefined && file !== undefined) {
      return this.fail(name, `and ${name}_FILE are both set; only one may be`) ?? null;
    }
    const value = direct ?? (file === undefined ? undefined : this.file(`${name}_FILE`, file)?.trim());
    if (value === undefined) return null;
    if (CREDENTIAL.test(value)) return new Secret(value);
    return (
      this.fail(direct === undefined ? `${name}_FILE` : name, 'holds no credential that a header can carry') ?? null
    );
  }

  /** The content of a file that a variable names; relative paths start at the working directory. */
  file(variable: string, name: string): string | undefined {
    try {
      return this.#inputs.readFile(path.resolve(this.#inputs.cwd, name));
    } catch (error) {
      return this.fail(variable, `names a file that cannot be read (${errorCode(error)})`);
    }
  }
}

export function errorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'unknown error';
}
