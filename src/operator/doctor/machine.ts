/** The machine: runtime, disk, address, certificate. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { accessSync, constants, mkdirSync, readdirSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config.ts';
import { refusalToListen } from '../../http/address.ts';
import { type Finding, fault, note, ok } from './finding.ts';

const NEEDED_MAJOR = 26;
const LITTLE_SPACE_BYTES = 1024 * 1024 * 1024;
/** Below this the journal's reserve is at risk. */
const NO_SPACE_BYTES = 64 * 1024 * 1024;
const EXPIRY_NOTE_MS = 14 * 86_400_000;

export function examineRuntime(version: string = process.versions.node): Finding {
  const major = Number(version.split('.')[0]);
  if (major >= NEEDED_MAJOR) return ok('machine', `Node.js ${version} on ${process.platform} ${process.arch}`);
  return fault(
    'machine',
    `Node.js ${version} is too old: ${NEEDED_MAJOR} is needed`,
    'install without --omit=optional to get the runtime package of this platform',
  );
}

/** @param freeBytes free bytes of a folder's file system; replaced in tests */
export function examineDataFolder(folder: string, freeBytes: (folder: string) => number = freeBytesOf): Finding[] {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    return [
      fault(
        'data folder',
        `${folder} cannot be written (${code})`,
        'give it to the account that runs the gateway, or set GATEHOUSE_DATA_DIR',
      ),
    ];
  }
  const findings: Finding[] = [];
  if ((statSync(folder).mode & 0o077) !== 0) {
    findings.push(note('data folder', `other accounts can read ${folder}`, `chmod 700 ${folder}`));
  }
  const free = freeBytes(folder);
  const shown = `${Math.floor(free / (1024 * 1024))} MiB free`;
  if (free < NO_SPACE_BYTES) {
    findings.push(fault('data folder', `${shown} on the disk of ${folder}`, 'requests are refused on a full disk'));
  } else if (free < LITTLE_SPACE_BYTES) {
    findings.push(note('data folder', `only ${shown} on the disk of ${folder}`));
  } else {
    findings.push(ok('data folder', `${folder}, ${shown}`));
  }
  return findings;
}

function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Journals that the next start enters; a gateway that runs has some of its own. */
export function examineJournals(dataDir: string): Finding[] {
  let count = 0;
  try {
    count = readdirSync(path.join(dataDir, 'journal')).filter((name) => !name.startsWith('.')).length;
  } catch {
    return [];
  }
  if (count === 0) return [];
  return [
    note(
      'data folder',
      `journals of running or killed processes: ${count}; the next start enters those of killed ones`,
    ),
  ];
}

/** Whether the gateway could listen on the address. Do not call while it runs. */
export async function examineAddress({ host, port }: Pick<Config, 'host' | 'port'>): Promise<Finding> {
  const code = await refusalToListen(host, port);
  if (code === undefined) return ok('network', `${host}:${port} is free`);
  const advice =
    code === 'EADDRINUSE'
      ? 'another program listens there: stop it, or set GATEHOUSE_PORT'
      : 'set GATEHOUSE_HOST and GATEHOUSE_PORT to an address of this machine';
  return fault('network', `cannot listen on ${host}:${port} (${code})`, advice);
}

export function examineCertificate({ tls }: Pick<Config, 'tls'>, clock: Clock): Finding[] {
  if (tls === null) return [];
  try {
    const certificate = new X509Certificate(tls.certificate);
    if (!certificate.checkPrivateKey(createPrivateKey(tls.key.reveal()))) {
      return [fault('network', 'GATEHOUSE_TLS_KEY_FILE is not the key of the certificate')];
    }
    const untilMs = Date.parse(certificate.validTo);
    if (untilMs <= clock.now()) return [fault('network', `the certificate has expired on ${certificate.validTo}`)];
    if (Date.parse(certificate.validFrom) > clock.now()) {
      return [fault('network', `the certificate is not valid before ${certificate.validFrom}`)];
    }
    const soon = untilMs - clock.now() < EXPIRY_NOTE_MS;
    return [(soon ? note : ok)('network', `the certificate is valid until ${certificate.validTo}`)];
  } catch (error) {
    return [fault('network', `the certificate or its key cannot be read: ${(error as Error).message}`)];
  }
}
