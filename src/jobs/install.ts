/** Makes or updates the tables of pg-boss, once for all processes, after the gateway's own migrations. */
import { type Target, withClient } from '../storage/connection.ts';
import { lockSession } from '../storage/session-lock.ts';
import { openBoss } from './boss.ts';

/** Arbitrary; no other advisory lock has this number. */
const INSTALL_LOCK = 0x6a6f6273;

export async function installJobs(target: Target): Promise<void> {
  await withClient(target, async (client) => {
    // Of gateways that start at once, two that made the tables would meet in the catalog. Closing the connection unlocks.
    await lockSession(client, INSTALL_LOCK);
    const rows = (result: { rows: unknown[] } | { rows: unknown[] }[]) =>
      Array.isArray(result) ? result.flatMap((each) => each.rows) : result.rows;
    const query = async <Row>(text: string, values?: readonly unknown[]) =>
      rows(await client.query(text, values as unknown[])) as Row[];
    const boss = await openBoss({ query }, { supervise: false });
    // Without a listener an error event would end the process; what matters is thrown by `start`.
    boss.on('error', () => {});
    await boss.start();
    await boss.stop({ graceful: false });
  });
}
