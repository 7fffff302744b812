/** Runs a program to its end, within limits, and leaves no process of it behind. */
import { spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import type { ToolContext } from './tool.ts';

interface CommandResult {
  /** Standard output and standard error as they came, cut in the middle. */
  readonly output: string;
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly timedOut: boolean;
}

/** Characters that are kept of the beginning of an output, and of its end. */
const KEPT = 16_000;
/** A process that left children with open pipes is not waited for longer than this after its exit. */
const PIPES_AFTER_EXIT_MS = 500;

/** Rejects if the program cannot be started, and with the signal's reason. */
export async function runCommand(
  argv: readonly [string, ...string[]],
  timeoutMs: number,
  context: ToolContext,
): Promise<CommandResult> {
  const { folder, clock, signal } = context;
  signal.throwIfAborted();
  const output = new BoundedText();
  let timedOut = false;
  const result = await new Promise<CommandResult>((resolve, reject) => {
    const [program, ...args] = argv;
    // A process group of its own, so that what the program started ends with it.
    const child = spawn(program, args, { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const end = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The group is gone.
      }
    };
    const timer = clock.timer(timeoutMs, () => {
      timedOut = true;
      end();
    });
    signal.addEventListener('abort', end, { once: true });
    for (const pipe of [child.stdout, child.stderr]) {
      const decoder = new StringDecoder('utf8');
      pipe.on('data', (chunk: Buffer) => output.add(decoder.write(chunk)));
    }
    child.on('error', reject);
    child.on('exit', () => {
      timer.cancel();
      clock.timer(PIPES_AFTER_EXIT_MS, () => {
        end();
        child.stdout.destroy();
        child.stderr.destroy();
      });
    });
    child.on('close', (code) => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      end();
      resolve({ output: output.text(), code, timedOut });
    });
  });
  signal.throwIfAborted();
  return result;
}

/** Keeps the beginning and the end of a text of any length. */
class BoundedText {
  #head = '';
  #tail = '';
  #leftOut = 0;

  add(text: string): void {
    const free = KEPT - this.#head.length;
    this.#head += text.slice(0, free);
    this.#tail += text.slice(Math.max(free, 0));
    if (this.#tail.length > 2 * KEPT) {
      this.#leftOut += this.#tail.length - KEPT;
      this.#tail = this.#tail.slice(-KEPT);
    }
  }

  text(): string {
    const leftOut = this.#leftOut + Math.max(this.#tail.length - KEPT, 0);
    if (leftOut === 0) return this.#head + this.#tail;
    return `${this.#head}\n[... ${leftOut} characters left out ...]\n${this.#tail.slice(-KEPT)}`;
  }
}
