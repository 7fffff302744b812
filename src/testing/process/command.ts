/**
 * The operator's commands, run in the process of the test as `src/main.ts` runs them: starting a process for each would take
 * most of the time of their tests. What `main.ts` itself decides is tested with `runProgram` of `gateway-process.ts`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import manifest from '../../../package.json' with { type: 'json' };
import { migrations } from '../../migrations.ts';
import { isCommand, runCommand as run } from '../../operator/index.ts';
import { sealedRows } from '../../sealed-rows.ts';
import { readConfig } from '../../server/load-config.ts';
import { commandEnvironment, type GatewayHome, type Outcome } from './gateway-process.ts';

const MACHINE = { config: readConfig, migrations, sealedRows, version: manifest.version };

interface Written {
  out: Buffer[];
  err: Buffer[];
}

/** What the running command has written; other code of this process writes to the real streams. */
const written = new AsyncLocalStorage<Written>();
/** Commands share the working folder and the environment, so they run one after the other. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command, e.g. `['keys', 'list']`, in the folder of an installation.
 *
 * @param env its environment, besides the data folder of the installation
 */
export function runCommand(
  home: Pick<GatewayHome, 'folder' | 'dataDir'>,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const outcome = last.then(() => outcomeOf(home, args, env));
  last = outcome.catch(() => {});
  return outcome;
}

async function outcomeOf(
  home: Pick<GatewayHome, 'folder' | 'dataDir'>,
  [name = '', ...args]: readonly string[],
  env: Record<string, string>,
): Promise<Outcome> {
  if (!isCommand(name)) throw new Error(`there is no command ${name}`);
  const [folder, environment] = [process.cwd(), process.env];
  const restore = [captured(process.stdout, 'out'), captured(process.stderr, 'err')];
  const seen: Written = { out: [], err: [] };
  process.chdir(home.folder);
  process.env = commandEnvironment(home, env);
  try {
    const code = await written.run(seen, () => run(name, args, MACHINE));
    return { code, out: Buffer.concat(seen.out).toString(), err: Buffer.concat(seen.err).toString() };
  } finally {
    process.env = environment;
    process.chdir(folder);
    for (const each of restore) each();
  }
}

/** Keeps what a command writes to the stream, which seems not to be a terminal. Returns what leaves the stream as it was. */
function captured(stream: NodeJS.WriteStream, which: keyof Written): () => void {
  const { write, isTTY } = stream;
  const listeners = stream.listeners('error');
  stream.isTTY = false;
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const seen = written.getStore();
    if (seen === undefined) return write.call(stream, chunk, ...(rest as []));
    seen[which].push(Buffer.from(chunk as string));
    const done = rest.at(-1);
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
  return () => {
    stream.write = write;
    stream.isTTY = isTTY;
    stream.removeAllListeners('error');
    for (const each of listeners) stream.on('error', each as () => void);
  };
}
