/**
 * A process that releases the secrets of a vault to one sandbox, as a gateway does: `releasing-process.ts JSON`, with the parts below.
 * It prints the id of the proxy's process, the folder of the socket, the certificate and the variables of the sandbox.
 */
import { readFileSync } from 'node:fs';
import { systemClock as clock } from '../../base/clock.ts';
import { silentLog as log } from '../../base/log.ts';
import { EgressProxy } from '../../egress-proxy/index.ts';
import { Sealing } from '../../sealing/index.ts';
import { openChanges } from '../../storage/changes.ts';
import { openDatabase } from '../../storage/database.ts';
import { SecretReleases } from '../../vault/index.ts';

const { sockets, entry, target, owner, sealingSettings, rootFile } = JSON.parse(process.argv[2]!);
const shared = { clock, log };
const database = await openDatabase({ target, ...shared });
const changes = await openChanges({ target, database, ...shared });
const sealing = new Sealing({ database, clock, settings: sealingSettings, freshness: changes.freshness });
const extraCa = readFileSync(rootFile, 'utf8');
const proxy = new EgressProxy({ ...shared, folder: sockets, entry, settings: () => ({ networks: [], extraCa }) });
const settings = () => ({ domains: ['*'], ports: [443] });
const releases = new SecretReleases({ ...shared, database, changes, sealing, settings });
const policy = { held: { owner, hold: async () => {} }, borrowedVaultId: null, domains: ['*'] };
const egress = await releases.prepare('box', policy);
const folder = await proxy.open('box', { ...egress.network, gid: null });
const { certificate } = egress.network;
console.log(JSON.stringify({ pid: proxy.pid, folder, certificate, environment: egress.environment() }));
