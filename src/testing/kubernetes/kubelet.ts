/** Runs the pods of a fake cluster on this machine: each in namespaces of its own, with the folders of its volumes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { lstatSync, mkdirSync, readlinkSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { AnyObject } from './schema.ts';

const AGENT = path.join(import.meta.dirname, 'pod-agent.ts');
const INSIDE = '/kubelet';

export interface KubeletOptions {
  folder: string;
  /** What images have at `/opt`: paths on this machine by name. */
  programs: Readonly<Record<string, string>>;
  /** Ports of the gateway that a pod may reach; null: its network is not restricted. */
  portsOf(pod: AnyObject): number[] | null;
  /** Address of the gateway. */
  host: string;
}

export interface RunningPod {
  process: ChildProcess;
  /** Of the sockets, outside. */
  folder: string;
  network: net.Server;
}

export class Kubelet {
  readonly #options: KubeletOptions;

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  start(pod: AnyObject): RunningPod {
    const { folder, programs, portsOf, host } = this.#options;
    const own = path.join(folder, 'pods', pod.metadata.uid!);
    const sockets = path.join(own, 'kubelet');
    mkdirSync(sockets, { recursive: true });
    const network = this.#network(path.join(sockets, 'net.sock'));
    const { spec } = pod;
    const [container] = spec.containers;
    const ports = portsOf(pod);
    const settings = {
      ...{ command: container.command, workingDir: container.workingDir ?? '/', host, ports: ports ?? [] },
      environment: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/' },
    };
    const mounts = container.volumeMounts.flatMap(
      (mount: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }) => {
        const from = path.join(this.#volume(pod, own, mount.name), mount.subPath ?? '');
        mkdirSync(from, { recursive: true, mode: 0o777 });
        return [mount.readOnly ? '--ro-bind' : '--bind', from, mount.mountPath];
      },
    );
    const { runAsUser: uid, runAsGroup: gid } = spec.securityContext;
    const child = spawn(
      'bwrap',
      [
        ...['--unshare-user', '--unshare-pid', '--unshare-ipc', ...(ports === null ? [] : ['--unshare-net'])],
        ...['--uid', `${uid}`, '--gid', `${gid}`, '--cap-drop', 'ALL', '--die-with-parent', '--clearenv'],
        ...['--ro-bind', '/usr', '/usr', ...['/bin', '/sbin', '/lib', '/lib64'].flatMap(rootFolder)],
        ...['--tmpfs', '/usr/local/bin', '--ro-bind', process.execPath, '/usr/local/bin/node'],
        ...['--ro-bind', '/etc', '/etc', '--proc', '/proc', '--dev', '/dev'],
        ...Object.entries(programs).flatMap(([name, from]) => ['--ro-bind', from, `/opt/${name}`]),
        ...mounts,
        ...['--bind', sockets, INSIDE, '--ro-bind', AGENT, '/agent.ts', '--remount-ro', '/', '--chdir', '/'],
        ...['--', '/usr/local/bin/node', '/agent.ts', INSIDE, JSON.stringify(settings)],
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
    return { process: child, folder: sockets, network };
  }

  /** Whether a command succeeds in the pod. */
  probe({ folder }: RunningPod, command: string[]): Promise<boolean> {
    return new Promise((resolve) => {
      const client = net.connect(path.join(folder, 'exec.sock'));
      let received = Buffer.alloc(0);
      client.on('error', () => resolve(false));
      client.on('data', (chunk) => {
        received = Buffer.concat([received, chunk as Buffer]);
      });
      client.on('close', () => resolve(received.includes('"Success"')));
      client.write(`${JSON.stringify(command)}\n`);
    });
  }

  async end({ process: child, network }: RunningPod): Promise<void> {
    network.close();
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }

  removeVolume(claim: string): void {
    rmSync(path.join(this.#options.folder, 'claims', claim), { recursive: true, force: true });
  }

  #volume({ spec }: AnyObject, own: string, name: string): string {
    const volume = spec.volumes.find((each: { name: string }) => each.name === name);
    if (volume === undefined) throw new Error(`the pod has no volume ${name}`);
    const claim = volume.persistentVolumeClaim?.claimName;
    return claim === undefined ? path.join(own, 'volumes', name) : path.join(this.#options.folder, 'claims', claim);
  }

  /** The network between pod and gateway: a line with the port, then the connection. */
  #network(socket: string): net.Server {
    const server = net.createServer({ allowHalfOpen: true }, (client) => {
      client.on('error', () => client.destroy());
      client.once('data', (first: Buffer) => {
        const end = first.indexOf('\n');
        const outside = net.connect({
          port: Number(first.toString('utf8', 0, end)),
          host: this.#options.host,
          allowHalfOpen: true,
        });
        outside.on('error', () => client.destroy());
        outside.once('close', () => client.destroy());
        client.once('close', () => outside.destroy());
        outside.write(first.subarray(end + 1));
        client.pipe(outside);
        outside.pipe(client);
      });
    });
    server.listen(socket);
    return server;
  }
}

function rootFolder(folder: string): string[] {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(folder), folder] : ['--ro-bind', folder, folder];
}
