/** The file system of a sandbox: built from nothing, as options of bubblewrap. */
import { lstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { SYSTEM_BUNDLE } from '../../egress-proxy/index.ts';
import { HOME, type Program, WORKSPACE } from '../sandbox.ts';

/** Where the gateway's own files are in a sandbox. */
export const OWN = '/opt/gatehouse';
export const EGRESS_FOLDER = '/run/egress';

const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
/** What programs look for in the root, on all distributions. */
const ROOT_FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Facts of the distribution, none of them secret or of this machine. */
const SHOWN_IN_ETC = ['alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'mime.types', 'localtime', 'java'];
/** Where other distributions than Debian look for certificates. */
const OTHER_BUNDLES = ['/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];

/** Files on this machine that become files of the sandbox. */
interface SystemFiles {
  /** Has `passwd`, `group`, `hosts` and `nsswitch.conf`. */
  etc: string;
  workspace: string;
  home: string;
  temporary: string;
  programs: readonly Program[];
  /** With a network: the socket's folder, the certificates, Node and the forwarder. */
  network: NetworkFiles | null;
}

export interface NetworkFiles {
  socketFolder: string;
  bundle: string;
  node: string;
  forwarder: string;
}

const readOnly = (from: string, to: string) => ['--ro-bind', from, to];

/** Ends with what no command can run without, so that options that were cut off start nothing. */
export function systemOptions(files: SystemFiles): string[] {
  const { etc, programs, network } = files;
  return [
    ...['--proc', '/proc', '--dev', '/dev', '--remount-ro', '/dev'],
    ...['--size', String(SHARED_MEMORY_BYTES), '--perms', '1777', '--tmpfs', '/dev/shm'],
    ...['--dir', '/etc', ...SHOWN_IN_ETC.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`])],
    ...['passwd', 'group', 'hosts', 'nsswitch.conf'].flatMap((name) => readOnly(path.join(etc, name), `/etc/${name}`)),
    ...['--ro-bind-try', '/etc/ssl/openssl.cnf', '/etc/ssl/openssl.cnf'],
    ...['--bind', files.temporary, '/tmp', '--dir', '/var', '--symlink', '../tmp', '/var/tmp'],
    ...programs.flatMap(({ name, path: from }) => readOnly(from, `/opt/${name}`)),
    ...(network === null ? [] : networkOptions(network)),
    ...['--bind', files.home, HOME, '--bind', files.workspace, WORKSPACE],
    ...bareSystem(),
  ];
}

/** The programs of this machine, and nothing to write to. */
export function bareSystem(): string[] {
  return [...readOnly('/usr', '/usr'), ...ROOT_FOLDERS.flatMap(rootFolder), '--remount-ro', '/'];
}

function networkOptions({ socketFolder, bundle, node, forwarder }: NetworkFiles): string[] {
  return [
    ...readOnly(socketFolder, EGRESS_FOLDER),
    ...readOnly(node, `${OWN}/bin/node`),
    ...readOnly(forwarder, `${OWN}/${path.basename(forwarder)}`),
    ...readOnly(bundle, SYSTEM_BUNDLE),
    ...OTHER_BUNDLES.flatMap((file) => ['--symlink', SYSTEM_BUNDLE, file]),
  ];
}

/** Links into /usr on most distributions, folders on some. */
function rootFolder(folder: string): string[] {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(folder), folder] : readOnly(folder, folder);
}

/** `PATH`: that of a usual system, then the programs that were brought. */
export function searchPath(programs: readonly Program[], hasNetwork: boolean): string {
  const brought = programs.flatMap(({ name }) => [`/opt/${name}/bin`, `/opt/${name}`]);
  const own = hasNetwork ? [`${OWN}/bin`] : [];
  return ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin', ...brought, ...own].join(':');
}

const [UID, GID] = [1000, 1000];

/** In a sandbox, its user has always the same number. */
export const INSIDE_USER = { uid: UID, gid: GID };

export const ETC_FILES: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/root:/bin/sh\nsandbox:x:${UID}:${GID}:sandbox:${HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
  group: `root:x:0:\nsandbox:x:${GID}:\nnogroup:x:65534:\n`,
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
};
