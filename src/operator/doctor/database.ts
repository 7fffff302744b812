/** The database: reachable, of the right kind, with the schema of this version, and with keys in it. */
import { type KeyKind, listOperatorKeys } from '../../access/index.ts';
import type { FederationPolicy } from '../../base/config.ts';
import { usdFromNano } from '../../base/money.ts';
import { countOutdated, Sealing, SealingError } from '../../sealing/index.ts';
import { unreturnedProcesses } from '../../spend/index.ts';
import { openChanges } from '../../storage/changes.ts';
import { describeTarget, type Target } from '../../storage/connection.ts';
import { type Database, openDatabase } from '../../storage/database.ts';
import { databaseFacts } from '../../storage/facts.ts';
import { NotificationsError } from '../../storage/listener.ts';
import { pendingMigrations } from '../../storage/migrate.ts';
import type { CommandParts } from '../command.ts';
import type { Installation } from '../installation.ts';
import { examineBlobs } from './blobs.ts';
import { type Finding, fault, note, ok } from './finding.ts';

const START_TIMEOUT_MS = 3_000;
const SKEW_MS = 2_000;

export async function examineDatabase(parts: CommandParts, { target }: Installation): Promise<Finding[]> {
  const { clock, log, migrations } = parts;
  let database: Database;
  try {
    database = await openDatabase({ target, clock, log, poolSize: 1, startTimeoutMs: START_TIMEOUT_MS });
  } catch (error) {
    return [fault('database', (error as Error).message, 'check DATABASE_URL, the network and the server')];
  }
  try {
    const findings = await examineServer(parts, target, database);
    findings.push(await examineNotifications(parts, target, database));
    const pending = await pendingMigrations({ target, migrations });
    if (pending.length === 0) return findings.concat(await examineContents(parts, database));
    return findings.concat(note('database', `the next start will run ${pending.length} migrations`));
  } catch (error) {
    return [fault('database', (error as Error).message)];
  } finally {
    await database.close();
  }
}

/** The server, and the rights of the gateway there. */
export async function examineServer(
  { clock }: Pick<CommandParts, 'clock'>,
  target: Target,
  database: Database,
): Promise<Finding[]> {
  const facts = await databaseFacts(database);
  const findings = [ok('database', `${describeTarget(target)}, version ${facts.version}`)];
  if (!facts.mayCreate) {
    findings.push(
      fault(
        'database',
        `the role ${facts.role} may not create tables in the schema ${facts.schema}`,
        `grant create on schema ${facts.schema} to ${facts.role}`,
      ),
    );
  }
  const skewMs = Math.abs(facts.nowMs - clock.now());
  if (skewMs > SKEW_MS) {
    const seconds = Math.round(skewMs / 1000);
    findings.push(
      note('database', `its clock differs from this machine's by ${seconds} s`, 'synchronize both clocks with NTP'),
    );
  }
  return findings;
}

type ContentParts = Pick<CommandParts, 'config' | 'clock' | 'sealedRows'>;

/** What the tables of this version contain. */
export async function examineContents(parts: ContentParts, database: Database): Promise<Finding[]> {
  const { config, clock } = parts;
  return [
    ...(await examineSealing(parts, database)),
    ...(await examineBlobs(config, database)),
    ...(await examineKeys(database, clock.now(), config.federation)),
    ...(await examineBudgets(database, clock.now(), config.limits.unreturnedAfterMs)),
  ];
}

/** Sends a notification through the server and waits for it, as a running gateway does continuously. */
async function examineNotifications(
  { clock, log }: CommandParts,
  target: Target,
  database: Database,
): Promise<Finding> {
  try {
    const changes = await openChanges({ target, database, clock, log });
    await changes.close();
    return ok('database', 'notifications of changes arrive');
  } catch (error) {
    if (!(error instanceof NotificationsError)) throw error;
    return fault('database', error.message, 'the gateway does not start behind such a pooler');
  }
}

async function examineSealing({ config, clock, sealedRows }: ContentParts, database: Database): Promise<Finding[]> {
  const sealing = new Sealing({ database, clock, settings: config.sealing });
  try {
    const key = await sealing.check();
    if (key === undefined) return [];
    const findings = [ok('credentials', `the encryption key is valid: ${key.source}`)];
    const advice = 'gatehouse sealing rotate-key';
    if (key.role === 'next')
      findings.push(note('credentials', 'a rotation of the encryption key was interrupted', advice));
    if (key.role === 'previous') {
      findings.push(
        note('credentials', 'the previous encryption key is still in use; its rotation is not complete', advice),
      );
    }
    const outdated = await countOutdated({ database, sealing, rows: sealedRows });
    if (outdated > 0) {
      const what = `${outdated} values use an older data key; a running gateway re-encrypts them`;
      findings.push(note('credentials', what, 'gatehouse sealing sweep'));
    }
    return findings;
  } catch (error) {
    if (!(error instanceof SealingError)) throw error;
    return [fault('credentials', error.message, 'restore the key; the gateway does not start without it')];
  }
}

/** Parts of budgets that stay blocked until an operator releases them. */
async function examineBudgets(database: Database, nowMs: number, silentMs: number): Promise<Finding[]> {
  const processes = await unreturnedProcesses(database, nowMs, silentMs);
  return processes.map(({ id, state, host, openRequests, journalHere, holds }) => {
    const held = holds.map(
      ({ scope, scopeId, interval, nano }) =>
        `${usdFromNano(nano)} USD of the ${interval} budget of ${scope} ${scopeId}`,
    );
    const why =
      state === 'replayed'
        ? `died with ${openRequests ?? 0} open requests of unknown cost`
        : `${host === null ? '' : `of ${host} `}shows no sign of life, and its journal is not entered`;
    const advice = journalHere
      ? 'start the gateway on this data folder to enter the journal'
      : `gatehouse spend release ${id}${state === 'replayed' ? '' : ', if its journal is lost'}`;
    return note('budgets', `process ${id} ${why}; it holds ${held.join(', ')}`, advice);
  });
}

async function examineKeys(
  database: Database,
  nowMs: number,
  policies: readonly FederationPolicy[],
): Promise<Finding[]> {
  const keys = await listOperatorKeys({ database }).catch(() => undefined);
  if (keys === undefined) return [note('keys', 'none exist yet: the first start creates them')];
  const usable = (kind: KeyKind) =>
    keys.filter(
      (key) => key.kind === kind && !key.disabled && (key.expiresAt === null || key.expiresAt.getTime() > nowMs),
    );
  const [management, inference] = [usable('management').length, usable('inference')];
  const findings = [ok('keys', `working keys: ${management} management, ${inference.length} inference`)];
  if (management === 0) findings.push(fault('keys', 'no management key works', 'gatehouse keys create --management'));
  if (inference.length === 0) findings.push(note('keys', 'no inference key works', 'gatehouse keys create'));
  for (const { id, keyHash } of policies) {
    if (inference.some(({ hash }) => hash === keyHash)) continue;
    const what = `no working inference key has the hash in the federation policy ${id}`;
    findings.push(note('keys', what, 'check GET /keys/{hash}; a rotated key keeps working in its policy'));
  }
  return findings;
}
