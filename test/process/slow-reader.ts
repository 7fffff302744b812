/** A client that stops reading for a while, on a stream larger than the allowed memory. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';

const EVENT_BYTES = 16 * 1024;
const MEBIBYTE = 1024 * 1024;
/**
 * The heap's own breathing, up to 62 MiB where other tests take the cores and collections come late. The 100 MiB
 * of the scale test cannot hide in it; for 20 MiB, `sent` shows that the upstream is held back.
 */
const GROWTH_LIMIT = 80 * MEBIBYTE;

/** Streams `megabytes` twice: once to a reader at full speed, as a warm-up, once to one that pauses. */
export async function slowReader(t: TestContext, megabytes: number): Promise<void> {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const gateway = await startGatewayProcess(t, { yaml: plannedYaml(upstream.url) });
  const events = Math.ceil((megabytes * MEBIBYTE) / EVENT_BYTES);
  const plan = { events, text: 'x'.repeat(EVENT_BYTES) };

  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, residentBytes(gateway.pid));
  }, 20);
  t.after(() => clearInterval(watch));
  const fast = ask(gateway.url, { tag: 'fast', ...plan });
  fast.keep = false;
  await until(() => fast.over, 'the fast reader is done', 300_000);
  assert.ok(fast.complete && fast.bytes > megabytes * MEBIBYTE);
  // At its highest, not after a collection that happens to be the last thing.
  const before = Math.max(peak, residentBytes(gateway.pid));
  peak = before;

  const slow = ask(gateway.url, { tag: 'slow', ...plan }, { paused: true });
  slow.keep = false;
  // Nothing more comes through once everybody's buffers are full.
  let sent = -1;
  for (let now = sentOf(upstream, 'slow'); now !== sent || now === 0; now = sentOf(upstream, 'slow')) {
    sent = now;
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  assert.ok(sent < events, 'the upstream is held back');
  const held = peak - before;
  slow.resume();
  await until(() => slow.over, 'the slow reader is done', 300_000);
  assert.ok(slow.complete && slow.bytes > megabytes * MEBIBYTE);
  clearInterval(watch);
  const growth = peak - before;
  t.diagnostic(
    `${megabytes} MiB: ${(sent * EVENT_BYTES) / MEBIBYTE} MiB sent while nobody read; resident ${mib(before)} before, ` +
      `+${mib(held)} at rest, +${mib(growth)} at most`,
  );
  assert.ok(growth < GROWTH_LIMIT, `resident memory grew by ${mib(growth)}`);
  const rows = await rowsOnce(embeddedTarget(gateway.home), 2);
  assert.deepEqual(
    rows.map(({ output }) => output),
    [11n, 11n],
  );
  await gateway.end('SIGTERM');
}

function sentOf(upstream: PlannedUpstream, tag: string): number {
  return upstream.log.findLast((entry) => entry.tag === tag)?.events ?? 0;
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MiB`;
}
