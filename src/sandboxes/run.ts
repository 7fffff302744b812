/** Runs a command to its end. */
import { Buffer } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { Command, Ending, Sandbox } from './sandbox.ts';

export interface Finished {
  ending: Ending;
  stdout: Buffer;
  stderr: Buffer;
}

/**
 * Runs a command with its output in memory. An ending by a limit is a result, not an error.
 * @param input for its standard input, which is closed afterwards
 */
export async function run(
  sandbox: Pick<Sandbox, 'exec'>,
  command: Command & { outputBytes?: number },
  input: Buffer | string = '',
): Promise<Finished> {
  const execution = await sandbox.exec(command);
  execution.stdin.end(input);
  const [stdout, stderr, ending] = await Promise.all([all(execution.stdout), all(execution.stderr), execution.ended]);
  return { ending, stdout, stderr };
}

async function all(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
