/**
 * One of several serving processes (GATEHOUSE_WORKERS). The primary tells it when to start, reload and stop. If the primary
 * dies, Node.js ends its workers at once; the next start replays their journals.
 */
import type { FirstKey } from '../access/index.ts';
import { type App, createApp } from '../app.ts';
import { systemClock as clock } from '../base/clock.ts';
import { createLog } from '../base/log.ts';
import { releaseMemory } from '../base/release-memory.ts';
import type { Target } from '../storage/connection.ts';
import { readConfig, rereadConfig } from './load-config.ts';
import { type PrimaryMessage, showFirstKeys, shownKey, type WorkerMessage } from './primary.ts';
import { StartError } from './start-error.ts';
import { PeerMetrics } from './worker-metrics.ts';

export async function serveAsWorker(): Promise<void> {
  let config = readConfig();
  const log = createLog({ stream: process.stderr, level: config.logLevel });
  let app: App | undefined;
  const send = (message: PrimaryMessage) => void process.send?.(message);
  const peers = new PeerMetrics(send, clock);
  const start = async (target: Target) => {
    app = await createApp({ config, target, clock, log, peerMetrics: () => peers.collect() });
    let firstKeys: readonly FirstKey[] = [];
    const consoleCode = await app.bootstrap((keys) => {
      firstKeys = keys;
      showFirstKeys(keys, config, log);
    });
    const created = { ...shownKey(firstKeys), ...(consoleCode && { consoleCode }) };
    send({ type: 'listening', serving: { ...(await app.listen()), ...created } });
    releaseMemory(clock, app.use);
  };
  const close = async () => {
    await app?.close();
    process.exit(0);
  };
  const fail = (error: unknown) => {
    log.error('the worker failed', error instanceof StartError ? { reason: error.message } : { cause: error });
    process.exit(1);
  };
  process.on('message', (message: WorkerMessage) => {
    if (message.type === 'start') start(message.target).catch(fail);
    else if (message.type === 'close') close().catch(fail);
    else if (message.type === 'retire') app?.retire();
    else if (message.type !== 'reload') {
      peers
        .receive(message, async () => (await app?.report()) ?? [])
        .catch((error: unknown) => log.warn('cannot send the metrics of this process', { error }));
    } else {
      const next = rereadConfig(config, log);
      if (next === undefined) return;
      config = next;
      app?.reload(next);
    }
  });
  // The primary decides; Ctrl-C reaches all processes of the terminal's group.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  process.on('SIGHUP', () => {});
}
