/** A client that stops reading for a while, on a stream larger than the buffers on its way. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { INSPECTED, retainedBytes } from '../../src/testing/process/inspector.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';

const EVENT_BYTES = 16 * 1024;
const MEBIBYTE = 1024 * 1024;
/** Of what the process keeps of a stream, garbage not counted: the chunks between two sockets. */
const RETAINED_LIMIT = 4 * MEBIBYTE;

/** Streams `megabytes` twice: once to a reader at full speed, as a warm-up, once to one that pauses twice. */
export async function slowReader(t: TestContext, megabytes: number): Promise<void> {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const yaml = plannedYaml(upstream.url);
  const gateway = await startGatewayProcess(t, { yaml, nodeOptions: [INSPECTED] });
  const events = Math.ceil((megabytes * MEBIBYTE) / EVENT_BYTES);
  const plan = { events, text: 'x'.repeat(EVENT_BYTES) };

  const fast = ask(gateway.url, { tag: 'fast', ...plan });
  fast.keep = false;
  await until(() => fast.over, 'the fast reader is done', 300_000);
  assert.ok(fast.complete && fast.bytes > megabytes * MEBIBYTE);
  const before = await retainedBytes(gateway);

  const slow = ask(gateway.url, { tag: 'slow', ...plan }, { paused: true });
  slow.keep = false;
  const sent = await heldBackAt(upstream, 'slow');
  assert.ok(sent < events, 'the upstream is held back');
  const unread = (await retainedBytes(gateway)) - before;
  slow.resume();
  await until(() => slow.bytes > (megabytes * MEBIBYTE) / 2, 'half is read', 300_000);
  slow.pause();
  await heldBackAt(upstream, 'slow');
  const halfRead = (await retainedBytes(gateway)) - before;
  slow.resume();
  await until(() => slow.over, 'the slow reader is done', 300_000);
  assert.ok(slow.complete && slow.bytes > megabytes * MEBIBYTE);
  const after = (await retainedBytes(gateway)) - before;
  t.diagnostic(
    `${megabytes} MiB: ${mib(sent * EVENT_BYTES)} sent while nobody read; kept ${mib(before)} before, ` +
      `+${mib(unread)} unread, +${mib(halfRead)} half read, +${mib(after)} after`,
  );
  for (const kept of [unread, halfRead, after]) assert.ok(kept < RETAINED_LIMIT, `${mib(kept)} are kept`);
  const rows = await rowsOnce(embeddedTarget(gateway.home), 2);
  assert.deepEqual(
    rows.map(({ output }) => output),
    [11n, 11n],
  );
  await gateway.end('SIGTERM');
}

/** Events that are sent once nothing more comes through, since the buffers of everybody on the way are full. */
async function heldBackAt(upstream: PlannedUpstream, tag: string): Promise<number> {
  const sentNow = () => upstream.log.findLast((entry) => entry.tag === tag)?.events ?? 0;
  let sent = -1;
  for (let now = sentNow(); now !== sent || now === 0; now = sentNow()) {
    sent = now;
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  return sent;
}

function mib(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
