/** The proxy's process: whom it runs as, what others see of it, and how it lives and dies with the gateway. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { createPlaceholder, SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { isWhole, read, secure } from '../../src/testing/egress-proxy/setup.ts';
import { entryFor, openFolder, superviseProxy } from '../../src/testing/egress-proxy/supervised.ts';
import { startProcess } from '../../src/testing/process/process.ts';
import { ROOT } from '../rules/source-files.ts';

const BOUND = 'api.bound.test';
const VALUE = `CANARY-${createPlaceholder()}`;
const P = createPlaceholder();
const SECRETS = [{ name: 'token', value: VALUE, hosts: [BOUND], placeholder: P }];

const bound = await startTlsHost(BOUND);
after(() => bound.close());
const { currentBundle } = (await import(path.join(ROOT, 'build', 'current-bundle.js'))) as {
  currentBundle(): string | undefined;
};
const isRoot = process.getuid?.() === 0;
const linuxRoot = !(isRoot && existsSync('/proc/self/environ')) && 'needs root on Linux';

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0] !== 'Z';
  } catch {
    return false;
  }
};

const atEnd = { after: (close: () => unknown) => after(close as () => Promise<void>) };
type Box = Awaited<ReturnType<typeof superviseProxy>>;
/** Of most tests. */
const box: Box = await superviseProxy(atEnd, { [BOUND]: bound.port }, SECRETS);

/** A request with the secret, over raw TLS. */
async function ask(box: Box): Promise<string> {
  const socket = await secure(box, BOUND);
  const answer = read(socket, isWhole);
  socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nauthorization: ${P}\r\n\r\n`);
  const text = await answer;
  socket.destroy();
  return text;
}

test('no process shows the value: not in arguments, environments or files, and not to the own user', {
  skip: linuxRoot,
}, async () => {
  assert.match(await ask(box), /^HTTP\/1\.1 200 /);
  assert.equal(bound.seen.at(-1)?.headers['authorization'], VALUE);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const file of ['cmdline', 'environ']) {
      let text = '';
      try {
        text = readFileSync(`/proc/${pid}/${file}`, 'latin1');
      } catch {}
      assert.ok(!text.includes(VALUE), `${file} of ${pid}`);
    }
  }
  const { pid } = box.proxy;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.match(status, /^Uid:\t26990\t26990\t26990\t26990$/m);
  assert.match(status, /^Gid:\t26990\t26990\t26990\t26990$/m);
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 +0 /m);
  assert.equal(
    readFileSync(`/proc/${pid}/environ`, 'latin1').replace(
      /UV_THREADPOOL_SIZE=32\0|NODE_CHANNEL\w+=\w+\0|PWD=\/\0|_=\S*\0/g,
      '',
    ),
    '',
  );
  for (const file of ['environ', 'mem', 'maps']) {
    const asUser = [
      '--reuid',
      '26990',
      '--regid',
      '26990',
      '--clear-groups',
      'head',
      '-c',
      '1',
      `/proc/${pid}/${file}`,
    ];
    assert.match(spawnSync('setpriv', asUser, { encoding: 'utf8' }).stderr, /Permission denied/, file);
  }
  const written = spawnSync('grep', ['-rlF', VALUE, box.folder, '/dev/shm', '/var/tmp'], { encoding: 'utf8' });
  assert.equal(written.stdout, '');
});

test('a socket can be used by the group of its sandbox, and by no other user', { skip: linuxRoot }, async () => {
  const folder = await box.proxy.open('grouped', { load: async () => box.settings, onRefused() {}, gid: 27_101 });
  const socketPath = path.join(folder, SOCKET_NAME);
  const connects = (uid: number, file: string) => {
    const script = `require('net').connect(${JSON.stringify(file)}).on('connect', () => process.exit(0)).on('error', (e) => (console.log(e.code), process.exit(1)))`;
    const args = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', process.execPath, '-e', script];
    return spawnSync('setpriv', args, { encoding: 'utf8' }).stdout.trim() || 'yes';
  };
  assert.equal(connects(27_101, socketPath), 'yes');
  assert.equal(connects(27_102, socketPath), 'EACCES');
  assert.equal(connects(27_101, box.socketPath), 'EACCES');
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
  await box.proxy.close('grouped');
  assert.ok(!existsSync(folder));
});

test('the proxy is restarted when it dies, and the socket of a sandbox comes back in its folder', async () => {
  const inode = statSync(box.sockets).ino;
  for (let round = 0; round < 2; round += 1) {
    const killed = box.proxy.pid!;
    process.kill(killed, 'SIGKILL');
    // The forwarder of the sandbox tries again until the socket is back.
    const ran = await box.run('curl', ['-sS', '-H', `authorization: ${P}`, `https://${BOUND}/`]);
    assert.equal(ran.code, 0, ran.errors);
    assert.notEqual(box.proxy.pid, killed);
    assert.equal(bound.seen.at(-1)?.headers['authorization'], VALUE);
    assert.ok(!isAlive(killed));
  }
  assert.equal(statSync(box.sockets).ino, inode);
  assert.equal(box.logged.length, 2);
  assert.ok(!box.logged.join().includes(VALUE));
});

test('a closed supervisor leaves neither a process nor a folder', async (t) => {
  const box = await superviseProxy(t, {}, []);
  const pid = box.proxy.pid!;
  await box.proxy.end();
  assert.ok(!isAlive(pid));
  assert.deepEqual(readdirSync(path.join(box.folder, 'sockets')), []);
});

test('a sandbox whose settings are malformed is not opened, and the reason has no value', async () => {
  const open = (id: string, changes: object) =>
    box.proxy.open(id, { load: async () => ({ ...box.settings, ...changes }), onRefused() {}, gid: null });
  await assert.rejects(
    open('a', { domains: ['https://x'] }),
    /cannot open a sandbox: the domain https:\/\/x is malformed/,
  );
  await assert.rejects(
    open('b', { secrets: [{ ...SECRETS[0], placeholder: 'x' }] }),
    /placeholder of the secret token/,
  );
  await assert.rejects(
    open('c', { authority: { certificate: 'x', key: 'y' } }),
    (error: Error) => !error.message.includes(VALUE),
  );
  await assert.rejects(open('../x', {}), /cannot be the id of a sandbox/);
  await assert.rejects(open('box', {}), /is open/);
  const failing = box.proxy.open('d', {
    load: () => Promise.reject(new Error('the vault is closed')),
    onRefused() {},
    gid: null,
  });
  await assert.rejects(failing, /the vault is closed/);
  assert.match(await ask(box), /^HTTP\/1\.1 200 /);
});

/** A gateway that does nothing but run a proxy. It prints the process id of the proxy. */
function gatewayFile(folder: string, entry: string): string {
  const file = path.join(folder, 'gateway.mjs');
  const imports = (name: string) => JSON.stringify(path.join(ROOT, 'src', name));
  writeFileSync(
    file,
    `import { createAuthority, EgressProxy } from ${imports('egress-proxy/index.ts')};
import { systemClock as clock } from ${imports('base/clock.ts')};
import { silentLog as log } from ${imports('base/log.ts')};
setInterval(() => {}, 1e6);
const settings = () => ({ networks: [], extraCa: null });
const proxy = new EgressProxy({ folder: process.argv[2], settings, clock, log, entry: ${JSON.stringify(entry)} });
const authority = await createAuthority(clock);
const sandbox = { secrets: [], domains: ['*'], ports: [443], authority };
const folder = await proxy.open('box', { load: async () => sandbox, onRefused() {}, gid: null });
console.log(JSON.stringify({ pid: proxy.pid, folder }));
`,
  );
  return file;
}

test('gateway and proxy may be killed in any order: no process stays, and what is left is swept', async (t) => {
  const folder = openFolder(t);
  const file = gatewayFile(folder, entryFor(folder, {}));
  const sockets = path.join(folder, 'sockets');
  for (let round = 0; round < 3; round += 1) {
    const gateway = startProcess(t, file, [sockets]);
    await until(() => gateway.printed.length > 0 || gateway.ended, 'the proxy runs');
    const { pid, folder: own } = gateway.printed[0] as { pid: number; folder: string };
    assert.ok(existsSync(path.join(own, SOCKET_NAME)));
    const before = readdirSync(sockets);
    assert.equal(before.length, 1, 'the folder of the killed gateway was removed');
    for (const each of [[gateway.pid, pid], [pid, gateway.pid], [gateway.pid]][round]!) process.kill(each, 'SIGKILL');
    await until(() => !isAlive(pid) && !isAlive(gateway.pid), 'both are gone');
  }
});

test('a long body waits in the client while its host does not read, not in the proxy', {
  skip: linuxRoot,
}, async (t) => {
  const box = await superviseProxy(t, { [BOUND]: bound.port }, SECRETS);
  await ask(box);
  const gate = Promise.withResolvers<void>();
  bound.hold(gate.promise);
  const socket = await secure(box, BOUND);
  const answer = read(socket, isWhole);
  bound.answer(
    (seen, response) => void response.setHeader('content-length', 9).end(String(seen.body.length).padStart(9)),
  );
  const bytes = 150_000_000;
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-type: text/plain\r\ncontent-length: ${bytes}\r\n\r\n`);
  for (let at = 0; at < bytes; at += 1_000_000) socket.write(Buffer.alloc(1_000_000, 'x'));
  let last = -1;
  let still = 0;
  await until(() => {
    still = socket.writableLength === last ? still + 1 : 0;
    last = socket.writableLength;
    return still > 100;
  }, 'nothing more is taken');
  assert.ok(socket.writableLength > bytes / 2, `${socket.writableLength} bytes wait in the client`);
  const peakMb = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${box.proxy.pid}/status`, 'utf8'))?.[1]) / 1024;
  assert.ok(peakMb < 200, `${peakMb} MB`);
  gate.resolve();
  assert.match(await answer, /150000000$/);
  bound.hold(Promise.resolve());
  bound.answer(undefined);
  socket.destroy();
});

test('the bundle of the package has both files, and the one for sandboxes needs no other', (t) => {
  const folder = openFolder(t);
  mkdirSync(path.join(folder, 'alone'));
  const built = currentBundle();
  assert.ok(built);
  const init = readFileSync(path.join(built, 'sandbox-init.js'), 'utf8');
  writeFileSync(path.join(folder, 'alone', 'sandbox-init.js'), init);
  const ran = spawnSync(process.execPath, [path.join(folder, 'alone', 'sandbox-init.js')], { encoding: 'utf8' });
  assert.deepEqual([ran.status, ran.stderr], [64, 'usage: sandbox-init SOCKET PORT COMMAND [ARGUMENT...]\n']);
  // Without a gateway it ends at once, as it does when the gateway is gone.
  const proxy = spawnSync(process.execPath, [path.join(built, 'egress-proxy.js')], { encoding: 'utf8' });
  assert.deepEqual([proxy.status, proxy.stderr], [0, '']);
});
