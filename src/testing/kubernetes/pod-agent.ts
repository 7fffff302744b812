/**
 * The container runtime in a pod of the fake cluster: runs the container's command, further commands that come over a socket, and passes
 * connections on that the network policies allow. `node pod-agent.ts FOLDER SETTINGS`, in namespaces of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import net from 'node:net';
import { constants } from 'node:os';
import path from 'node:path';

interface AgentSettings {
  command: [string, ...string[]];
  workingDir: string;
  environment: Record<string, string>;
  /** Where connections are allowed to. */
  host: string;
  ports: number[];
}

const [folder = '', text = ''] = process.argv.slice(2);
const { command, workingDir, environment, host, ports } = JSON.parse(text) as AgentSettings;

function start([program, ...args]: [string, ...string[]]): ChildProcess {
  return spawn(program, args, { cwd: workingDir, env: environment, stdio: 'pipe' });
}

const first = start(command);
first.stdout?.pipe(process.stdout);
first.stderr?.pipe(process.stderr);
first.on('exit', (code) => process.exit(code ?? 1));

for (const port of ports) {
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    const outside = net.connect({ path: path.join(folder, 'net.sock'), allowHalfOpen: true });
    outside.on('error', () => client.destroy());
    client.on('error', () => outside.destroy());
    outside.once('close', () => client.destroy());
    client.once('close', () => outside.destroy());
    outside.write(`${port}\n`);
    client.pipe(outside);
    outside.pipe(client);
  });
  server.listen(port, host);
}

/** A line with the words, then frames: stream, length, content. */
net
  .createServer((client) => {
    let child: ChildProcess | undefined;
    let buffer = Buffer.alloc(0);
    const send = (stream: number, content: Buffer) => {
      const head = Buffer.alloc(5);
      head[0] = stream;
      head.writeUInt32BE(content.length, 1);
      return client.write(Buffer.concat([head, content]));
    };
    const pass = (stream: number, source: ChildProcess['stdout']) => {
      source?.on('data', (chunk: Buffer) => {
        if (send(stream, chunk)) return;
        source.pause();
        client.once('drain', () => source.resume());
      });
    };
    const begin = (words: [string, ...string[]]) => {
      child = start(words);
      pass(1, child.stdout);
      pass(2, child.stderr);
      child.stdin?.on('error', () => {});
      child.on('error', (error) => finish({ status: 'Failure', message: error.message }));
      child.on('close', (code, signal) => {
        const number = code ?? 128 + constants.signals[signal!];
        const details = { causes: [{ reason: 'ExitCode', message: String(number) }] };
        finish(
          number === 0
            ? { status: 'Success' }
            : {
                status: 'Failure',
                reason: 'NonZeroExitCode',
                message: `command terminated with exit code ${number}`,
                details,
              },
        );
      });
    };
    const finish = (status: object) => {
      send(3, Buffer.from(JSON.stringify(status)));
      client.end();
    };
    client.on('data', (chunk: Buffer) => {
      buffer = Buffer.concat([buffer, chunk]);
      if (child === undefined) {
        const end = buffer.indexOf('\n');
        if (end < 0) return;
        begin(JSON.parse(buffer.toString('utf8', 0, end)));
        buffer = buffer.subarray(end + 1);
      }
      while (buffer.length >= 5 && buffer.length >= 5 + buffer.readUInt32BE(1)) {
        const content = buffer.subarray(5, 5 + buffer.readUInt32BE(1));
        if (buffer[0] === 0) child?.stdin?.write(content);
        else child?.stdin?.end();
        buffer = buffer.subarray(5 + content.length);
      }
    });
    client.on('error', () => {});
    // As container runtimes do: the input ends, the process goes on.
    client.on('close', () => child?.stdin?.end());
  })
  .listen(path.join(folder, 'exec.sock'));
