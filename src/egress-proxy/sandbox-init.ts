/**
 * The first process in a sandbox: `node sandbox-init.js SOCKET PORT COMMAND [ARGUMENT...]`. It passes connections to this port
 * of 127.0.0.1 on to the proxy's socket, runs the command, and ends with its exit code. A file of its own without imports, so that a
 * sandbox needs nothing else of the gateway.
 */
import { spawn } from 'node:child_process';
import net from 'node:net';
import { constants } from 'node:os';

/** While the proxy is restarted, connections are tried again. */
const RETRY_MS = 100;
const MOST_RETRIES = 50;

const [socketPath, port, command, ...args] = process.argv.slice(2);
if (socketPath === undefined || command === undefined || !/^\d{1,5}$/.test(port ?? '')) {
  console.error('usage: sandbox-init SOCKET PORT COMMAND [ARGUMENT...]');
  process.exit(64);
}

const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => forward(client, socketPath));

function forward(client: net.Socket, path: string, retries = 0): void {
  const proxy = net.connect({ path, allowHalfOpen: true });
  const fail = () => {
    if (retries >= MOST_RETRIES || client.destroyed) client.destroy();
    else setTimeout(() => forward(client, path, retries + 1), RETRY_MS);
  };
  proxy.once('error', fail);
  proxy.once('connect', () => {
    proxy.off('error', fail);
    client.on('error', () => proxy.destroy());
    proxy.on('error', () => client.destroy());
    client.once('close', () => proxy.destroy());
    proxy.once('close', () => client.destroy());
    client.pipe(proxy);
    proxy.pipe(client);
  });
}

server.on('error', (error) => {
  console.error(`sandbox-init cannot listen on 127.0.0.1:${port}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(port), '127.0.0.1', () => {
  const child = spawn(command, args, { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`sandbox-init cannot run ${command}: ${error.message}`);
    process.exit(127);
  });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal!]));
});
