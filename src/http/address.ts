/** Checks whether an address can be listened on. */
import { createServer } from 'node:net';

/** Resolves with the system's error code, e.g. `EADDRINUSE`; undefined when the address is free. */
export function refusalToListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}
