/**
 * One of several serving processes (GATEHOUSE_WORKERS). The primary tells it when to start, reload and stop. If the primary
 * dies, Node.js ends its workers at once; the next start replays their journals.
 */
import type { FirstKey } from './access/index.ts';
import { type App, createApp } from './app.ts';
import { systemClock as clock } from './base/clock.ts';
import { createLog } from './base/log.ts';
import { releaseMemory } from './base/release-memory.ts';
import { Colleagues } from './between-processes.ts';
import { type PrimaryMessage, showFirstKeys, shownKey, type WorkerMessage } from './primary.ts';
import { readSettings, rereadSettings } from './settings.ts';
import { StartError } from './start-error.ts';
import type { Target } from './storage/connection.ts';

export async function serveAsWorker(): Promise<void> {
  let config = readSettings();
  const log = createLog({ stream: process.stderr, level: config.logLevel });
  let app: App | undefined;
  const tell = (message: PrimaryMessage) => void process.send?.(message);
  const colleagues = new Colleagues(tell, clock);
  const start = async (target: Target) => {
    app = await createApp({ config, target, clock, log, colleagues: () => colleagues.reports() });
    let firstKeys: readonly FirstKey[] = [];
    await app.bootstrap((keys) => {
      firstKeys = keys;
      showFirstKeys(keys, config, log);
    });
    tell({ type: 'listening', serving: { ...(await app.listen()), ...shownKey(firstKeys) } });
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
      colleagues
        .heard(message, async () => (await app?.report()) ?? [])
        .catch((error: unknown) => log.warn('cannot send the metrics of this process', { error }));
    } else {
      const next = rereadSettings(config, log);
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
