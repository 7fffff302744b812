/**
 * Fails the running test of a group (`test/run.ts`) for an error that nothing handled. A file that is run alone does not need this:
 * there the test runner follows each promise to its test.
 */
import { afterEach } from 'node:test';

/** A test that waits for what the error has prevented would never end. */
const PATIENCE_MS = 60_000;

let unhandled: { error: unknown; timer: NodeJS.Timeout } | undefined;

process.on('uncaughtException', note);
process.on('unhandledRejection', note);
// After the last test.
process.on('exit', () => {
  if (unhandled === undefined) return;
  console.error('an error that nothing handled:', unhandled.error);
  process.exitCode = 1;
});

function note(error: unknown): void {
  unhandled ??= { error, timer: setTimeout(() => endProcess(error), PATIENCE_MS).unref() };
}

function endProcess(error: unknown): void {
  console.error('an error that nothing handled, in a test that does not end:', error);
  process.exit(1);
}

afterEach(() => {
  if (unhandled === undefined) return;
  const { error, timer } = unhandled;
  unhandled = undefined;
  clearTimeout(timer);
  throw error;
});
