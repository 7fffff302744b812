/** Limits of time and output for a running command. */
import { Transform } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { DriverExecution } from './driver.ts';
import type { Execution } from './sandbox.ts';

interface CommandBounds {
  /** null: none. */
  timeoutMs: number | null;
  /** Of both outputs together; null: unlimited. */
  outputBytes: number | null;
}

/** The command with outputs that end at the limit. */
export function bounded(
  execution: DriverExecution,
  { timeoutMs, outputBytes }: CommandBounds,
  clock: Clock,
): Execution {
  if (timeoutMs !== null) {
    const timer = clock.timer(timeoutMs, () => execution.end('time'));
    void execution.ended.then(() => timer.cancel());
  }
  if (outputBytes === null) return execution;
  let left = outputBytes;
  const counted = (source: Execution['stdout']) => {
    const counter = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const kept = chunk.length <= left ? chunk : chunk.subarray(0, left);
        left -= kept.length;
        if (kept.length < chunk.length) execution.end('output');
        done(null, kept);
      },
    });
    source.once('error', () => counter.end());
    return source.pipe(counter);
  };
  return {
    stdin: execution.stdin,
    stdout: counted(execution.stdout),
    stderr: counted(execution.stderr),
    signal: (name) => execution.signal(name),
    ended: execution.ended,
  };
}
