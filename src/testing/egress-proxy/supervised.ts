/** The proxy as its own process, for programs that are started as in a sandbox. */
import { type ExecFileException, execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import {
  createAuthority,
  EgressProxy,
  type EgressProxyOptions,
  type RefusalReport,
  type SandboxSettings,
  SOCKET_NAME,
  sandboxEnvironment,
  sandboxInitFile,
  trustBundle,
} from '../../egress-proxy/index.ts';
import { root } from './hosts.ts';

const PROXY = path.join(import.meta.dirname, '..', '..', 'egress-proxy', 'proxy.ts');

/** A test, or the file of tests. */
interface Place {
  after(run: () => unknown): void;
}

/** A folder that every user can enter. It is removed after the test. */
export function openFolder(t: Place): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'egress-'));
  chmodSync(folder, 0o755);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The entry of a proxy's process for which the names lead to ports on loopback. */
export function entryFor(folder: string, hosts: Readonly<Record<string, number>>): string {
  const file = path.join(folder, 'entry.mjs');
  // Every name has an address of its own, so that ports can be found by it.
  const names = Object.entries(hosts).map(([name, port], index) => [name, `93.184.216.${index + 1}`, port] as const);
  writeFileSync(
    file,
    `import net from 'node:net';
import { followGateway } from ${JSON.stringify(PROXY)};
const names = ${JSON.stringify(names)};
followGateway({
  resolve: async (host) => names.filter(([name]) => name === host).map(([, address]) => address),
  open: (address) => net.connect(names.find(([, each]) => each === address)?.[2] ?? 1, '127.0.0.1'),
});
`,
  );
  return file;
}

export interface Ran {
  code: number;
  out: string;
  errors: string;
}

/** A proxy as the gateway starts it, without sandboxes, for which the names lead to ports on loopback. */
export function startSupervised(t: Place, hosts: Readonly<Record<string, number>>, door?: EgressProxyOptions['door']) {
  const folder = openFolder(t);
  const logged: string[] = [];
  const proxy = new EgressProxy({
    folder: path.join(folder, 'sockets'),
    settings: () => ({ networks: [], extraCa: root.certificate }),
    clock: systemClock,
    log: { ...silentLog, error: (event, fields) => logged.push(`${event} ${JSON.stringify(fields)}`) },
    entry: entryFor(folder, hosts),
    ...(door !== undefined && { door }),
  });
  t.after(() => proxy.end());
  return { proxy, folder, logged };
}

export async function superviseProxy(
  t: Place,
  hosts: Readonly<Record<string, number>>,
  secrets: SandboxSettings['secrets'],
) {
  const { proxy, folder, logged } = startSupervised(t, hosts);
  const refusals: RefusalReport[] = [];
  const authority = await createAuthority(systemClock);
  const settings: SandboxSettings = { secrets, domains: ['*'], ports: [443, 80], authority };
  const sockets = await proxy.open('box', {
    load: async () => settings,
    onRefused: (refusal) => refusals.push(refusal),
    gid: null,
  });
  const bundle = path.join(folder, 'bundle.pem');
  writeFileSync(bundle, trustBundle(authority.certificate, root.certificate));
  const home = path.join(folder, 'home');
  mkdirSync(home);
  const socketPath = path.join(sockets, SOCKET_NAME);
  const port = await freePort();
  /** Runs a program with the environment of a sandbox, behind the forwarder. */
  const run = (command: string, args: readonly string[], more: Record<string, string> = {}) =>
    new Promise<Ran>((resolve) => {
      const env = { PATH: process.env['PATH'] ?? '', HOME: home, ...sandboxEnvironment(bundle, port), ...more };
      execFile(
        process.execPath,
        [sandboxInitFile(), socketPath, String(port), command, ...args],
        { env, cwd: home, timeout: 60_000 },
        (error: ExecFileException | null, out, errors) => resolve({ code: Number(error?.code ?? 0), out, errors }),
      );
    });
  return { ...{ proxy, refusals, logged, folder, home, socketPath, sockets, authority, settings, run, bundle } };
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
