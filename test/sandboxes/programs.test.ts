/** Real programs in real sandboxes, through the egress proxy, each with a host that has a secret and one that has none. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { createAuthority, createPlaceholder, EgressProxy, type RefusalReport } from '../../src/egress-proxy/index.ts';
import type { Sandbox } from '../../src/sandboxes/index.ts';
import { root, startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { gitBackend, npmRegistry } from '../../src/testing/egress-proxy/program-hosts.ts';
import { entryFor, openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { openSandboxes, shell, skip } from '../../src/testing/sandboxes/sandboxes.ts';

const BOUND = 'api.bound.test';
const FREE = 'free.test';
const VALUE = 'REAL-secret-value-of-programs';
const P = createPlaceholder();
const place = { after: (run: () => unknown) => after(async () => void (await run())) };
const has = (program: string) =>
  spawnSync(program, ['--version'], { env: { PATH: '/usr/local/bin:/usr/bin:/bin' } }).error === undefined;
const missing = (program: string) => !has(program) && `there is no ${program} in /usr`;

describe('programs', { skip }, async () => {
  if (skip) return;
  const [bound, free] = [await startTlsHost(BOUND), await startTlsHost(FREE)];
  place.after(() => Promise.all([bound.close(), free.close()]));
  const folder = openFolder(place);
  const refusals: RefusalReport[] = [];
  const egressProxy = new EgressProxy({
    folder: path.join(folder, 'sockets'),
    settings: () => ({ networks: [], extraCa: root.certificate }),
    ...{ clock: systemClock, log: silentLog },
    entry: entryFor(folder, { [BOUND]: bound.port, [FREE]: free.port }),
  });
  const { sandboxes } = openSandboxes(place, { egressProxy, extraCa: root.certificate });
  place.after(() => egressProxy.end());
  const authority = await createAuthority(systemClock);
  let box: Sandbox;
  let quiet: Sandbox;
  before(async () => {
    const secrets = [{ name: 'token', value: VALUE, hosts: [BOUND], placeholder: P }];
    const settings = { secrets, domains: ['*'], ports: [443, 80], authority };
    const network = {
      certificate: authority.certificate,
      load: async () => settings,
      onRefused: (refusal: RefusalReport) => refusals.push(refusal),
    };
    box = await sandboxes.create({ id: 'box', owner: 'test', network, environment: { TOKEN: P } });
    const none = { ...network, load: async () => ({ ...settings, secrets: [], domains: [FREE] }) };
    quiet = await sandboxes.create({ id: 'quiet', owner: 'test', network: none });
  });

  const reset = () => {
    for (const host of [bound, free]) {
      host.seen.length = 0;
      host.answer(undefined);
    }
  };
  /** Runs a script that gets the URL of a host and the placeholder in `$TOKEN`; the value must not come back. */
  async function ran(script: string, host: string) {
    const finished = await shell(box, script, `https://${host}`);
    assert.equal(finished.code, 0, finished.errors + finished.out);
    assert.ok(!(finished.out + finished.errors).includes(VALUE));
    return finished.out;
  }
  const sent = (host: string) => (host === BOUND ? bound : free).seen.map(({ headers }) => headers['authorization']);
  const HOSTS = [
    [BOUND, VALUE],
    [FREE, P],
  ] as const;

  test('curl reaches both hosts, and only the bound one gets the value', { skip: missing('curl') }, async () => {
    reset();
    for (const [host, expected] of HOSTS) {
      const out = await ran('curl -sSi -H "authorization: Bearer $TOKEN" "$1/"', host);
      assert.match(out, new RegExp(`x-echo-authorization: Bearer ${P}`));
      assert.deepEqual(sent(host), [`Bearer ${expected}`]);
    }
  });

  test("Node's fetch does, with the Node that the sandbox brings", async () => {
    reset();
    const script = `/opt/gatehouse/bin/node --input-type=module -e 'const r = await fetch(process.argv[1], { headers: { authorization: process.env.TOKEN } });
      console.log(r.status, r.headers.get("x-echo-authorization"))' "$1/"`;
    for (const [host, expected] of HOSTS) {
      assert.equal(await ran(script, host), `200 ${P}\n`);
      assert.deepEqual(sent(host), [expected]);
    }
  });

  test('git clones and pushes', { skip: missing('git') }, async () => {
    reset();
    const repository = openFolder(place);
    const git = (...args: string[]) => assert.equal(spawnSync('git', ['-C', repository, ...args]).status, 0);
    git('init', '-q', '--bare', 'repo.git');
    git('-C', 'repo.git', 'config', 'http.receivepack', 'true');
    const serve = gitBackend(repository);
    bound.answer((seen, response) => {
      const right = `Basic ${Buffer.from(`x:${VALUE}`).toString('base64')}`;
      if (seen.headers['authorization'] === right) return serve(seen, response);
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    });
    free.answer(serve);
    const script = `set -e; export GIT_TERMINAL_PROMPT=0; url=$1/repo.git
      git clone -q "$url" work && cd work && git config user.email a@b.test && git config user.name a
      head -c 100000 /dev/urandom > data && git add data && git commit -qm one && git push -q origin HEAD:main
      cd .. && git clone -q -b main "$url" again && cmp work/data again/data && rm -rf work again`;
    await ran(script.replace('$1', `https://x:$TOKEN@${BOUND}`), BOUND);
    git('-C', 'repo.git', 'update-ref', '-d', 'refs/heads/main');
    await ran(script, FREE);
  });

  test('npm installs a package from a registry that wants a token', { skip: missing('npm') }, async () => {
    reset();
    const folderOfPackage = openFolder(place);
    mkdirSync(path.join(folderOfPackage, 'package'));
    writeFileSync(path.join(folderOfPackage, 'package', 'package.json'), '{"name":"parcel","version":"1.0.0"}');
    assert.equal(spawnSync('tar', ['-czf', 'parcel.tgz', 'package'], { cwd: folderOfPackage }).status, 0);
    const tarball = readFileSync(path.join(folderOfPackage, 'parcel.tgz'));
    bound.answer(npmRegistry(tarball, BOUND, `Bearer ${VALUE}`));
    free.answer(npmRegistry(tarball, FREE, undefined));
    const script = `set -e; rm -rf project && mkdir project && cd project && echo '{}' > package.json
      printf 'registry=%s/\\n//${BOUND}/:_authToken=%s\\n' "$1" "$TOKEN" > .npmrc
      npm install parcel --no-audit --no-fund --no-update-notifier >/dev/null && cat node_modules/parcel/package.json`;
    for (const [host] of HOSTS) assert.match(await ran(script, host), /"parcel"/);
  });

  test('the placeholder is refused towards other hosts and without TLS, and a sandbox has only its own rules', async () => {
    reset();
    const plain = await shell(box, `curl -sSi -H "x: $TOKEN" http://${BOUND}/`);
    assert.match(plain.out, /^HTTP\/1\.1 403 /);
    assert.ok(refusals.some(({ secret, host }) => secret === 'token' && host === BOUND));
    const other = await shell(quiet, `curl -sS -H "x: ${P}" https://${BOUND}/`);
    assert.notEqual(other.code, 0);
    assert.equal((await shell(quiet, `curl -sS -o /dev/null -w '%{http_code}' https://${FREE}/`)).out, '200');
    assert.equal(bound.seen.length, 0);
  });

  test('a sandbox reaches nothing but its proxy, and not the socket of another', async () => {
    const direct = 'curl -sS --noproxy "*" --max-time 3 http://93.184.216.34/';
    assert.notEqual((await shell(box, direct)).code, 0);
    const { out } = await shell(
      box,
      'ls /run/egress; ls -d /run/*; test -S /run/egress/egress.sock && echo socket; find / -type s 2>/dev/null',
    );
    assert.equal(out, '/run/egress\nsocket\n');
    for (const address of ['169.254.169.254', '127.0.0.1', '[::1]', '10.0.0.1', 'localhost']) {
      const { out: code } = await shell(box, `curl -s -o /dev/null -w '%{http_code}' -p "http://${address}/"`);
      assert.equal(code, '000', address);
    }
    const local = await shell(
      box,
      `curl -s -o /dev/null -w '%{http_connect}' --noproxy '' -p -x http://127.0.0.1:3128 "http://127.0.0.1:22/"`,
    );
    assert.match(local.out, /^[45]\d\d$/);
  });
});
