/** Runs the commands of one call, one after the other, within its limits. */
import type { Fields } from '../../../formats/conversation/fields.ts';
import { run, type Sandbox } from '../../../sandboxes/index.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { type Environment, type RequestContainers, shownFiles } from '../container/index.ts';

/** UTF-16 units of a command. An argument of a process has at most 128 KiB. */
export const LONGEST_COMMAND = 30_000;
/** After which a command is ended. */
const OUTPUT_BYTES = 1024 * 1024;
/** UTF-16 units of all outputs of a call that the model reads. */
export const LONGEST_OUTPUT = 30_000;
/** The part of a call's time that its commands may take, so that their output still reaches the model. */
const SHARE_OF_TIME = 0.9;
/** Exit code of a command that a limit has ended, as after SIGKILL. */
const KILLED = 137;

/** Models write for bash, which few machines do not have. */
const START = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi';

const LIMITS: Readonly<Record<string, string>> = {
  time: 'it took too long',
  output: 'it wrote too much',
  memory: 'it needed too much memory',
  disk: 'it used too much disk space',
};

export interface CommandOutput {
  stdout: string;
  stderr: string;
  exitCode: number;
  /** Why it was ended; absent if it ended by itself. */
  ended?: string;
  timedOut: boolean;
}

interface Place {
  containers: RequestContainers;
  environment: Environment;
}

interface Wanted {
  commands: readonly string[];
  /** Of each command. */
  timeoutMs?: number | undefined;
  /** Of all outputs, at most `LONGEST_OUTPUT`. */
  outputLength?: number | undefined;
}

interface Done {
  /** In the order of the commands. What does not fit into the limit is cut out of the middle. */
  outputs: CommandOutput[];
  /** Members of the tool's item: the container, and the files that were made. */
  where: Fields;
}

/** @throws GatewayError if there is no container */
export async function runCommands(
  { commands, timeoutMs = Number.POSITIVE_INFINITY, outputLength = LONGEST_OUTPUT }: Wanted,
  { containers, environment }: Place,
  running: ToolsRunning,
): Promise<Done> {
  const { clock, limits } = running.parts;
  const deadline = clock.monotonic() + limits.serverToolCallMs * SHARE_OF_TIME;
  const use = await containers.of(environment, running);
  use.isChanged = true;
  const length = Math.floor(Math.min(outputLength, LONGEST_OUTPUT) / commands.length / 2);
  const outputs: CommandOutput[] = [];
  for (const command of commands) {
    running.signal.throwIfAborted();
    const leftMs = deadline - clock.monotonic();
    const time = Math.max(1, Math.min(timeoutMs, containers.limits.commandMs, leftMs));
    const outputBytes = Math.min(containers.limits.outputBytes, OUTPUT_BYTES);
    outputs.push(await runOne(use.sandbox, command, { timeoutMs: time, outputBytes, length }));
  }
  return { outputs, where: await shownFiles(use) };
}

async function runOne(
  sandbox: Sandbox,
  command: string,
  { timeoutMs, outputBytes, length }: { timeoutMs: number; outputBytes: number; length: number },
): Promise<CommandOutput> {
  const argv = ['sh', '-c', START, 'sh', command] as const;
  const { ending, stdout, stderr } = await run(sandbox, { argv, timeoutMs, outputBytes });
  const { code, reason } = ending;
  return {
    stdout: shortened(stdout, length),
    stderr: shortened(stderr, length),
    exitCode: code ?? KILLED,
    ...(reason !== 'exit' && { ended: LIMITS[reason] ?? 'the sandbox has ended' }),
    timedOut: reason === 'time',
  };
}

/** A text without its middle, if it is longer. */
function shortened(output: Buffer, length: number): string {
  const text = output.toString('utf8');
  if (text.length <= length) return text;
  const half = Math.floor(length / 2);
  const left = `\n[${text.length - 2 * half} characters left out]\n`;
  return `${text.slice(0, half)}${left}${text.slice(text.length - half)}`.toWellFormed();
}

/** For the model. */
export function told({ stdout, stderr, exitCode, ended }: CommandOutput): object {
  return { stdout, stderr, exit_code: exitCode, ...(ended !== undefined && { ended }) };
}

/** How commands run, for the model. */
export const ABOUT_COMMANDS =
  'Files stay for the following calls; variables, folders and background processes end with a command.';
