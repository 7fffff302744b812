/** Kills the processes that release secrets, in every order, while secrets are written. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { root, startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { rawIn } from '../../src/testing/egress-proxy/setup.ts';
import { entryFor, openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { descendantsOf, startProcess } from '../../src/testing/process/process.ts';
import { vaultOf } from '../vault/vault.ts';

const PROCESS = path.join(import.meta.dirname, '..', '..', 'src', 'testing', 'process', 'releasing-process.ts');
const HOST = 'api.test';

/** What is killed, one after the other. */
const ORDERS = [['gateway'], ['proxy', 'gateway'], ['gateway', 'proxy'], ['proxy']] as const;

interface Printed {
  pid: number;
  folder: string;
  certificate: string;
  environment: Record<string, string>;
}

/** Each round: secrets are written during the kills; afterwards no process is left, and all that were stored are released. */
export async function killReleases(t: TestContext, rounds: number): Promise<void> {
  const host = await startTlsHost(HOST);
  t.after(() => host.close());
  const gateway = await startGateway(t);
  const vault = vaultOf(gateway);
  await vault.put('first', 'the first value', [HOST]);
  const client = await connectOnce(t, gateway.target);
  const { rows } = await client.query(
    `select 'workspace' as type, workspace_id as id, organization_id as "organizationId", workspace_id as "workspaceId"
       from vaults`,
  );
  const folder = openFolder(t);
  const rootFile = path.join(folder, 'root.pem');
  writeFileSync(rootFile, root.certificate);
  const sockets = path.join(folder, 'sockets');
  const entry = entryFor(folder, { [HOST]: host.port });
  const parts = {
    ...{ sockets, rootFile, entry, owner: rows[0] },
    ...{ target: gateway.target, sealingSettings: gateway.config.sealing },
  };
  const values = new Map([['first', 'the first value']]);
  for (let round = 0; round < rounds; round += 1) {
    const releasing = startProcess(t, PROCESS, [JSON.stringify(parts)]);
    await until(() => releasing.printed.length > 0 || releasing.ended, 'the process releases');
    const { pid, folder: own, certificate, environment } = releasing.printed[0] as Printed;
    assert.equal(readdirSync(sockets).length, 1, 'what the last round left was removed');
    assert.deepEqual(Object.keys(environment), [...values.keys()].map((name) => name.toUpperCase()).toSorted());
    const inside = { socketPath: path.join(own, SOCKET_NAME), authority: { certificate } };
    const all = Object.values(environment).join(' ');
    const request = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nauthorization: ${all}\r\nconnection: close\r\n\r\n`;
    const released = () => host.seen.at(-1)?.headers['authorization'];
    assert.match(await rawIn(inside, HOST, request), /^HTTP\/1\.1 200 /);
    assert.equal(
      released(),
      [...values]
        .toSorted()
        .map(([, value]) => value)
        .join(' '),
    );

    const writes = [`made${round}`, 'first'].map(async (name) => {
      const value = `value ${name} of ${round}`;
      await vault.put(name, value, [HOST]);
      values.set(name, value);
    });
    const order = ORDERS[round % ORDERS.length]!;
    for (const each of order) process.kill(each === 'proxy' ? pid : releasing.pid, 'SIGKILL');
    await Promise.all(writes);
    if (!order.some((each) => each === 'gateway')) {
      const isBack = () =>
        rawIn(inside, HOST, request).then(
          () => released() !== undefined,
          () => false,
        );
      await until(isBack, 'the proxy is back');
      assert.ok(released()!.includes(`value first of ${round}`));
      assert.equal(descendantsOf(releasing.pid).length, 1);
      process.kill(releasing.pid, 'SIGKILL');
    }
    await until(() => releasing.ended && runningWith(entry).length === 0, 'both are gone, and no other proxy runs');
  }
}

/** The ids of processes with this argument. Those that are dead, but not waited for, have no arguments. */
function runningWith(argument: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes(argument);
    } catch {
      return false;
    }
  });
}
