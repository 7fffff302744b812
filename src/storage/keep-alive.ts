/**
 * Keeps the process alive while `work` runs. The clock's timers do not, and a start that waits for a server to appear
 * may hold nothing else.
 */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const { port1, port2 } = new MessageChannel();
  port1.on('message', () => {});
  try {
    return await work();
  } finally {
    port1.close();
    port2.close();
  }
}
