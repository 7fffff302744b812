/** Looks into a gateway process through the inspector of Node.js. */
import assert from 'node:assert/strict';
import type { GatewayProcess } from './gateway-process.ts';

/** Makes a process listen for `retainedBytes`, on a free port. */
export const INSPECTED = '--inspect=127.0.0.1:0';

/** Bytes that are reachable, in the heap and outside of it: garbage is collected first. */
export async function retainedBytes({ output }: Pick<GatewayProcess, 'output'>): Promise<number> {
  const url =
    /Debugger listening on (ws:\S+)/.exec(output)?.[1] ?? assert.fail('the process was started without INSPECTED');
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  try {
    await call(socket, 'HeapProfiler.collectGarbage', {});
    const expression = '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())';
    const { result } = await call(socket, 'Runtime.evaluate', { expression });
    return (result as { value: number }).value;
  } finally {
    socket.close();
  }
}

function call(socket: WebSocket, method: string, params: object): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const options = { once: true };
    const answered = ({ data }: { data: unknown }) => {
      const { result, error } = JSON.parse(String(data)) as { result?: Record<string, unknown>; error?: unknown };
      if (result === undefined) reject(new Error(`${method}: ${JSON.stringify(error)}`));
      else resolve(result);
    };
    socket.addEventListener('message', answered, options);
    socket.addEventListener('close', () => reject(new Error(`${method}: the process has ended`)), options);
    socket.send(JSON.stringify({ id: 1, method, params }));
  });
}
