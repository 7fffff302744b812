/** Real programs in the environment of a sandbox, each with a host that has a secret and one that has none. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { createPlaceholder } from '../../src/egress-proxy/index.ts';
import { startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { gitBackend, npmRegistry } from '../../src/testing/egress-proxy/program-hosts.ts';
import { openFolder, superviseProxy } from '../../src/testing/egress-proxy/supervised.ts';

const BOUND = 'api.bound.test';
const FREE = 'free.test';
const VALUE = 'REAL-secret-value-of-programs';
const P = createPlaceholder();

const bound = await startTlsHost(BOUND);
const free = await startTlsHost(FREE);
const place = { after: (run: () => unknown) => after(async () => void (await run())) };
const box = await superviseProxy(place, { [BOUND]: bound.port, [FREE]: free.port }, [
  { name: 'token', value: VALUE, hosts: [BOUND], placeholder: P },
]);
after(() => Promise.all([bound.close(), free.close()]));

const has = (program: string) => spawnSync(program, ['--version']).error === undefined;
const skip = (program: string) => !has(program) && `there is no ${program}`;
const arrived = (host: typeof bound, part: string) =>
  host.seen.some((seen) => JSON.stringify([seen.rawHeaders, seen.path, seen.body.toString('latin1')]).includes(part));
const reset = () => {
  for (const host of [bound, free]) {
    host.seen.length = 0;
    host.answer(undefined);
  }
};

for (const version of ['--http1.1', '--http2']) {
  test(`curl ${version} reaches both hosts, and only the bound one gets the value`, {
    skip: skip('curl'),
  }, async () => {
    reset();
    const ask = (host: string) =>
      box.run('curl', [
        '-sS',
        '-i',
        version,
        '-H',
        `authorization: Bearer ${P}`,
        '-d',
        `k=${P}`,
        `https://${host}/?q=${P}`,
      ]);
    const one = await ask(BOUND);
    assert.equal(one.code, 0, one.errors);
    assert.match(one.out, new RegExp(`x-echo-authorization: Bearer ${P}`));
    assert.deepEqual(
      [bound.seen[0]?.headers['authorization'], bound.seen[0]?.body.toString()],
      [`Bearer ${VALUE}`, `k=${VALUE}`],
    );
    assert.equal(bound.seen[0]?.version, version === '--http2' ? '2.0' : '1.1');
    const two = await ask(FREE);
    assert.equal(two.code, 0, two.errors);
    assert.equal(free.seen[0]?.headers['authorization'], `Bearer ${P}`);
    assert.ok(![one, two].some(({ out, errors }) => (out + errors).includes(VALUE)));
  });
}

test('curl that follows a redirect to another host takes no value there', { skip: skip('curl') }, async () => {
  reset();
  bound.answer((_seen, response) => void response.writeHead(302, { location: `https://${FREE}/` }).end());
  const ran = await box.run('curl', ['-sS', '--location-trusted', '-u', `u:${P}`, `https://${BOUND}/`]);
  assert.equal(ran.code, 0, ran.errors);
  assert.equal(bound.seen[0]?.headers['authorization'], `Basic ${Buffer.from(`u:${VALUE}`).toString('base64')}`);
  assert.equal(free.seen[0]?.headers['authorization'], `Basic ${Buffer.from(`u:${P}`).toString('base64')}`);
});

test('curl without TLS is refused where it carries a placeholder', { skip: skip('curl') }, async () => {
  const ran = await box.run('curl', ['-sS', '-i', '-H', `x: ${P}`, `http://${BOUND}/`]);
  assert.match(ran.out, /^HTTP\/1\.1 403 [\s\S]*The secret token is not released to api\.bound\.test without TLS/);
  assert.ok(box.refusals.some(({ secret, host, port }) => secret === 'token' && host === BOUND && port === 80));
});

const FETCH = `
const [url, token] = process.argv.slice(1);
const response = await fetch(url, { method: 'POST', headers: { authorization: token, 'content-type': 'application/json' }, body: JSON.stringify({ token }) });
console.log(response.status, response.headers.get('x-echo-authorization'), await response.text());`;

test("Node's fetch uses the proxy and gets the placeholder back", async () => {
  reset();
  for (const [host, expected] of [
    [BOUND, VALUE],
    [FREE, P],
  ] as const) {
    const ran = await box.run(process.execPath, ['--input-type=module', '-e', FETCH, `https://${host}/`, P]);
    assert.equal(ran.code, 0, ran.errors);
    assert.match(ran.out, new RegExp(`^200 ${P} `));
    assert.ok(!ran.out.includes(VALUE));
    const [seen] = (host === BOUND ? bound : free).seen;
    assert.deepEqual(
      [seen?.headers['authorization'], seen?.body.toString()],
      [expected, JSON.stringify({ token: expected })],
    );
  }
});

const PYTHON = `
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], data=("k=" + sys.argv[2]).encode(), headers={"authorization": sys.argv[2]})
print(urllib.request.urlopen(request).read().decode())`;

test("Python's urllib reaches both hosts", { skip: skip('python3') }, async () => {
  reset();
  for (const [host, expected] of [
    [BOUND, VALUE],
    [FREE, P],
  ] as const) {
    const ran = await box.run('python3', ['-c', PYTHON, `https://${host}/`, P]);
    assert.equal(ran.code, 0, ran.errors);
    assert.ok(ran.out.includes(P) && !ran.out.includes(VALUE));
    assert.equal((host === BOUND ? bound : free).seen[0]?.headers['authorization'], expected);
  }
});

test('git clones and pushes over HTTPS with the secret as its password', { skip: skip('git') }, async () => {
  reset();
  const folder = openFolder(place);
  const git = (...args: string[]) => assert.equal(spawnSync('git', args, { cwd: folder }).status, 0, args.join(' '));
  git('init', '-q', '--bare', 'repo.git');
  git('-C', 'repo.git', 'config', 'http.receivepack', 'true');
  const serve = gitBackend(folder);
  bound.answer((seen, response) => {
    const right = `Basic ${Buffer.from(`x:${VALUE}`).toString('base64')}`;
    if (seen.headers['authorization'] === right) return serve(seen, response);
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  });
  free.answer(serve);
  const script = `set -e
    git clone -q "$1" work && cd work
    git config user.email a@b.test && git config user.name a
    head -c 100000 /dev/urandom > data && git add data && git commit -qm one && git push -q origin HEAD:main
    cd .. && git clone -q -b main "$1" again && cmp work/data again/data && rm -rf work again`;
  for (const url of [`https://x:${P}@${BOUND}/repo.git`, `https://${FREE}/repo.git`]) {
    const ran = await box.run('sh', ['-c', script, 'sh', url], { GIT_TERMINAL_PROMPT: '0' });
    assert.equal(ran.code, 0, ran.errors);
    assert.ok(!(ran.out + ran.errors).includes(VALUE));
    if (url.includes(BOUND))
      spawnSync('git', ['-C', path.join(folder, 'repo.git'), 'update-ref', '-d', 'refs/heads/main']);
  }
  assert.ok(arrived(bound, '/repo.git/git-receive-pack') && arrived(free, '/repo.git/git-upload-pack'));
});

test('npm installs a package from a registry that wants a token', { skip: skip('npm') }, async () => {
  reset();
  const folder = openFolder(place);
  mkdirSync(path.join(folder, 'package'));
  writeFileSync(path.join(folder, 'package', 'package.json'), '{"name":"parcel","version":"1.0.0"}');
  assert.equal(spawnSync('tar', ['-czf', 'parcel.tgz', 'package'], { cwd: folder }).status, 0);
  const tarball = readFileSync(path.join(folder, 'parcel.tgz'));
  bound.answer(npmRegistry(tarball, BOUND, `Bearer ${VALUE}`));
  free.answer(npmRegistry(tarball, FREE, undefined));
  for (const host of [BOUND, FREE]) {
    const project = openFolder(place);
    writeFileSync(path.join(project, 'package.json'), '{}');
    const token = host === BOUND ? `//${BOUND}/:_authToken=${P}\n` : '';
    writeFileSync(path.join(project, '.npmrc'), `registry=https://${host}/\n${token}cache=${project}/cache\n`);
    const ran = await box.run('npm', [
      '--prefix',
      project,
      'install',
      'parcel',
      '--no-audit',
      '--no-fund',
      '--no-update-notifier',
    ]);
    assert.equal(ran.code, 0, ran.errors + ran.out);
    assert.ok(readFileSync(path.join(project, 'node_modules', 'parcel', 'package.json'), 'utf8').includes('parcel'));
    assert.ok(!readFileSync(path.join(project, 'package-lock.json'), 'utf8').includes(VALUE));
  }
  assert.ok(!arrived(free, VALUE));
});
