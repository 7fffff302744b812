/** A proxy for tests: resolves every name to this machine, and records its requests. */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

export interface AskedProxy {
  /** `host:port` */
  place: string;
  authorization: string | undefined;
}

export interface TestProxy {
  readonly asked: AskedProxy[];
  /** With the name `ann` and the password. */
  readonly url: string;
}

export interface ProxyOptions {
  password: string;
  /** Serves TLS. */
  tls?: { key: string; cert: string } | undefined;
  /** Says something else than a connection. */
  answer?: ((socket: Socket) => void) | undefined;
}

export async function startProxy(test: Pick<TestContext, 'after'>, options: ProxyOptions): Promise<TestProxy> {
  const asked: AskedProxy[] = [];
  const sockets = new Set<Socket>();
  const server = options.tls ? https.createServer(options.tls) : http.createServer();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('connect', (request, socket: Socket, head: Buffer) => {
    asked.push({ place: request.url!, authorization: request.headers['proxy-authorization'] });
    socket.on('error', () => {});
    if (options.answer) {
      options.answer(socket);
      return;
    }
    const behind = net.connect(Number(request.url!.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\nVia: x\r\n\r\n');
      behind.write(head);
      behind.pipe(socket).pipe(behind);
    });
    sockets.add(behind);
    behind.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const scheme = options.tls ? 'https' : 'http';
  return { asked, url: `${scheme}://ann:${encodeURIComponent(options.password)}@127.0.0.1:${port}` };
}
