/**
 * The real gateway as a separate process, as an operator starts it: for tests that signal it, kill it, and restart it on the
 * same data directory.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { processesIn } from '../../storage/embedded/processes.ts';
import { until } from '../clock/clock.ts';
import { dataFolder, emptyFolder } from '../database/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, PRICING, UPSTREAM_KEY } from '../gateway/gateway.ts';

/** Where a gateway lives: its working folder with `gatehouse.yaml`, and its data folder. Removed when the test ends. */
export interface GatewayHome {
  folder: string;
  dataDir: string;
  /** What has to be undone before the folder goes, the last thing first; the gateways in it are killed. */
  closers?: (() => unknown)[];
}

export interface GatewayProcessOptions {
  /** Of a gateway that has ended, to start it again, or made by `gatewayHome`; a fresh one otherwise. */
  home?: GatewayHome;
  /** The yaml file; the one that is there already otherwise. */
  yaml?: Record<string, unknown> | string;
  env?: Record<string, string>;
  /** Options of Node.js, for the default command. */
  nodeOptions?: readonly string[];
  /** Default: the sources, run by the Node.js of the test. */
  command?: readonly string[];
}

export interface LogLine {
  level: string;
  event: string;
  [field: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A busy machine takes its time. */
const PATIENCE_MS = 120_000;

const MAIN = path.join(import.meta.dirname, '..', '..', '..', 'build', 'start.js');

type Test = Pick<TestContext, 'after'>;

/** @param prepared false: the data folder does not exist yet, so that the first start makes everything */
export async function gatewayHome(test: Test, prepared = true): Promise<GatewayHome> {
  const removals: (() => unknown)[] = [];
  const later = { after: (run: unknown) => void removals.push(run as () => unknown) };
  const dataDir = prepared ? await dataFolder(later) : path.join(emptyFolder(later), 'data');
  const home = { folder: path.dirname(dataDir), dataDir, closers: [] as (() => unknown)[] };
  test.after(async () => {
    for (const close of home.closers.reverse()) await close();
    await until(() => serversOf(home).length === 0, 'the last postgres ends', PATIENCE_MS);
    for (const remove of removals) await remove();
  });
  return home;
}

/** Live processes of the embedded PostgreSQL of a data folder. */
export function serversOf({ dataDir }: GatewayHome): number[] {
  return processesIn(path.join(dataDir, 'postgres'));
}

/** Starts a gateway without waiting for anything. It is killed when the test ends. */
export async function launchGateway(test: Test, options: GatewayProcessOptions = {}): Promise<GatewayProcess> {
  const home = options.home ?? (await gatewayHome(test));
  const gateway = new GatewayProcess(home, options);
  home.closers?.push(async () => {
    gateway.signal('SIGKILL');
    await gateway.exit;
  });
  return gateway;
}

/** Starts a gateway and waits until it serves. */
export async function startGatewayProcess(test: Test, options: GatewayProcessOptions = {}): Promise<GatewayProcess> {
  const gateway = await launchGateway(test, options);
  await gateway.ready();
  return gateway;
}

export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** Runs the program with these arguments to its end, as a process. Commands of the operator: `runCommand` of `command.ts`. */
export function runProgram(home: GatewayHome, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { cwd: home.folder, env: commandEnvironment(home) },
      (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      },
    );
  });
}

/** The environment of a command for an installation: nothing of the developer's own, except for the search path. */
export function commandEnvironment(
  { dataDir }: Pick<GatewayHome, 'dataDir'>,
  env: Record<string, string> = {},
): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', GATEHOUSE_DATA_DIR: dataDir, ...env };
}

export class GatewayProcess {
  readonly home: GatewayHome;
  readonly child: ChildProcess;
  readonly exit: Promise<Exit>;
  /** What it has logged so far. */
  readonly log: LogLine[] = [];
  /** Everything that it has written to its output and its error output. */
  output = '';
  ended = false;
  /** Real milliseconds from the start to the first 200 of `/ready`. */
  startMs = 0;
  readonly #startedAt = performance.now();
  readonly #workers: number;
  #rest = '';

  constructor(
    home: GatewayHome,
    {
      yaml,
      env = {},
      nodeOptions = [],
      command = [process.execPath, ...nodeOptions, MAIN, 'serve'],
    }: GatewayProcessOptions,
  ) {
    this.home = home;
    this.#workers = Number(env['GATEHOUSE_WORKERS'] ?? 1);
    if (yaml !== undefined) this.writeYaml(yaml);
    const [program = '', ...args] = command;
    this.child = spawn(program, args, {
      cwd: home.folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        GATEHOUSE_PORT: '0',
        GATEHOUSE_DATA_DIR: home.dataDir,
        GATEHOUSE_MANAGEMENT_KEY: MANAGEMENT_KEY,
        GATEHOUSE_INFERENCE_KEY: INFERENCE_KEY,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#logged(text));
    this.exit = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        this.ended = true;
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** `http://127.0.0.1:port` */
  get url(): string {
    const line = this.lines('listening')[0];
    if (line === undefined) throw new Error('the gateway does not listen');
    return line['address'] as string;
  }

  get api(): string {
    return `${this.url}/api/v1`;
  }

  lines(event: string): LogLine[] {
    return this.log.filter((line) => line.event === event);
  }

  /** The `count`th line of this event, once it is there. */
  logged(event: string, count = 1): Promise<LogLine> {
    return until(() => this.lines(event)[count - 1], `"${event}" is logged\n${this.output}`, PATIENCE_MS);
  }

  /** Resolves when every worker serves; rejects when the process ends before. */
  async ready(): Promise<void> {
    await until(
      () => this.ended || this.lines('listening').length >= this.#workers,
      'the gateway listens',
      PATIENCE_MS,
    );
    if (this.ended) throw new Error(`the gateway ended instead of serving:\n${this.output}`);
    const answer = await fetch(`${this.url}/ready`);
    if (answer.status !== 200) throw new Error(`/ready answered ${answer.status}`);
    this.startMs = performance.now() - this.#startedAt;
  }

  signal(name: NodeJS.Signals): void {
    if (!this.ended) this.child.kill(name);
  }

  /** Sends the signal and waits for the end. */
  async end(name: NodeJS.Signals): Promise<Exit> {
    this.signal(name);
    await until(() => this.ended, `the gateway ends by ${name}`, PATIENCE_MS);
    return this.exit;
  }

  writeYaml(yaml: Record<string, unknown> | string): void {
    const text = typeof yaml === 'string' ? yaml : JSON.stringify(yaml, null, 2);
    writeFileSync(path.join(this.home.folder, 'gatehouse.yaml'), text);
  }

  get(route: string, key: string = INFERENCE_KEY): Promise<Response> {
    return fetch(this.api + route, { headers: { authorization: `Bearer ${key}` } });
  }

  post(route: string, body: unknown, key: string = INFERENCE_KEY, signal?: AbortSignal): Promise<Response> {
    return fetch(this.api + route, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
  }

  #logged(text: string): void {
    this.output += text;
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('{')) this.log.push(JSON.parse(line) as LogLine);
  }
}

/** Yaml with one provider `planned` of the chat format at `url`, whose model is `test/planned`. */
export function plannedYaml(url: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const { provider, model, ...members } = more as { provider?: object; model?: object } & Record<string, unknown>;
  return {
    ...members,
    providers: [
      {
        id: 'planned',
        name: 'Planned',
        kind: 'chat',
        base_url: url,
        api_key: UPSTREAM_KEY,
        models: [
          {
            id: 'test/planned',
            upstream_id: 'planned',
            context_length: 200_000,
            max_completion_tokens: 8_000,
            pricing: PRICING,
            ...model,
          },
        ],
        ...provider,
      },
    ],
  };
}
