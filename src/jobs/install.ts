/** Makes or updates the tables of pg-boss, once for all processes, after the gateway's own migrations. */
import { type Target, withClient } from '../storage/connection.ts';
import { openBoss } from './boss.ts';

export async function installJobs(target: Target): Promise<void> {
  await withClient(target, async (client) => {
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
