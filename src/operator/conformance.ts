/** `gatehouse conformance`. */
import { writeFile } from 'node:fs/promises';
import { stayAlive } from '../base/clock.ts';
import {
  checkConformance,
  countsOf,
  GATEWAYS,
  jsonOf,
  markdownOf,
  NO_RESPONSE,
  upstreamsUrl,
} from '../conformance/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';

const DEFAULT_PORT = 18_900;

export const CONFORMANCE_HELP = `gatehouse conformance --base-url URL --key KEY [--gateway gatehouse|litellm|portkey|other] [--port PORT]
                      [--only TEXT] [--json] [--output FILE]
    checks any gateway from outside: plays its upstreams on PORT (default ${DEFAULT_PORT}), is its client in the formats chat,
    messages and responses, and prints what is lost between the two. --only: features whose names contain the text.
    Exit codes: 0 nothing is lost, 1 something is, 2 wrong arguments, 4 the gateway cannot be reached
gatehouse conformance --config [--gateway NAME] [--port PORT] [--output FILE]
    prints or writes the configuration that the gateway needs for it`;

const OPTIONS = {
  'base-url': { type: 'string' },
  key: { type: 'string' },
  gateway: { type: 'string', default: 'gatehouse' },
  port: { type: 'string', default: String(DEFAULT_PORT) },
  only: { type: 'string' },
  output: { type: 'string' },
  json: { type: 'boolean' },
  config: { type: 'boolean' },
} as const;

const EXIT = { kept: 0, lost: 1, unreachable: 4 } as const;

/** Needs no settings of this machine. */
export async function conformanceCommand(args: readonly string[], { clock, out }: CommandParts): Promise<number> {
  const values = parseArguments(args, OPTIONS).values as Record<string, string | undefined>;
  const gateway = values['gateway']!;
  if (GATEWAYS[gateway] === undefined) {
    throw new UsageError(`--gateway ${gateway} is not one of ${Object.keys(GATEWAYS).join(', ')}`);
  }
  const port = portOf(values['port']!);
  const write = async (text: string) => {
    if (values['output'] === undefined) out.print(text.trimEnd());
    else await writeFile(values['output'], text);
  };
  if (values['config']) {
    await write(configOf(gateway, port));
    return EXIT.kept;
  }
  const baseUrl = urlOf(values['base-url']);
  const mayEnd = stayAlive();
  try {
    const { key = '', only } = values;
    const isShown = out.isTTY && process.stderr.isTTY;
    const progress = (done: number, all: number) =>
      void process.stderr.write(`\r${done}/${all}${done === all ? '\n' : ''}`);
    const options = { gateway, baseUrl, key, port, clock };
    const rows = await checkConformance({ ...options, ...(only && { only }), ...(isShown && { progress }) });
    if (rows.length === 0) throw new UsageError(`--only ${only}: no feature has this in its name`);
    if (rows.flatMap((row) => row.cells).every(({ detail }) => detail?.includes(NO_RESPONSE))) {
      console.error(`no response from ${baseUrl}`);
      return EXIT.unreachable;
    }
    await write(values['json'] ? jsonOf(gateway, rows) : `${markdownOf(rows)}\n`);
    return countsOf(rows).lost > 0 ? EXIT.lost : EXIT.kept;
  } finally {
    mayEnd();
  }
}

function configOf(gateway: string, port: number): string {
  const text = GATEWAYS[gateway]!.config(upstreamsUrl(port));
  return text || `${gateway} needs no configuration: every request names its upstream\n`;
}

function portOf(value: string): number {
  const port = Number(value);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new UsageError(`--port ${value} is not a port`);
  return port;
}

function urlOf(value: string | undefined): string {
  if (value === undefined) throw new UsageError('--base-url is missing: the URL of the gateway');
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--base-url ${JSON.stringify(value)} is not an http or https URL`);
  }
  return value;
}
