/**
 * Pipes for the outputs of a command. Node gives children sockets, which programs cannot open as `/dev/stdout` or `/dev/stderr`;
 * only a named pipe can be made here. The input stays a socket: opening a named pipe that nobody writes to any more waits forever.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';

const execFileAsync = promisify(execFile);
const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

export interface OutputPipes {
  /** For the child. Close them once it has them. */
  ends: readonly [stdout: number, stderr: number];
  stdout: Readable;
  stderr: Readable;
}

/** @param folder of the gateway; the pipes have no names any more when this resolves */
export async function makePipes(folder: string): Promise<OutputPipes> {
  const names = [path.join(folder, `pipe-${randomUUID()}`), path.join(folder, `pipe-${randomUUID()}`)];
  // The sandbox's user opens them by the links in its /proc.
  await execFileAsync('mkfifo', ['-m', '666', ...names]);
  const opened: number[] = [];
  // The reading end first: then the writing end, which must be blocking, opens without waiting.
  const open = (name: string) => {
    for (const flags of [O_RDONLY | O_NONBLOCK, O_WRONLY]) opened.push(openSync(name, flags));
  };
  try {
    for (const name of names) open(name);
  } catch (error) {
    for (const descriptor of opened) closeSync(descriptor);
    throw error;
  } finally {
    for (const name of names) unlinkSync(name);
  }
  const [out, outEnd, errors, errorsEnd] = opened as [number, number, number, number];
  const reading = (fd: number) => new net.Socket({ fd, readable: true, writable: false });
  return { ends: [outEnd, errorsEnd], stdout: reading(out), stderr: reading(errors) };
}
