/** A proxy between a gateway and its database that records every statement. */
import net, { type AddressInfo, type Socket } from 'node:net';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Target } from '../../storage/connection.ts';
import { until } from '../clock/clock.ts';
import { emptyFolder } from './database.ts';

export interface DatabaseTap {
  /** For what is to be listened to. */
  readonly target: Target;
  /** Every statement that was run, on whatever connection, in the order in which they came by. */
  readonly statements: readonly string[];
  /** Resolves when every statement is answered, no transaction is open and none follows. */
  quiet(): Promise<void>;
  /** Once the database is not needed any more. */
  close(): void;
}

const SOCKET = '.s.PGSQL.5432';
/** What the listener sends once a second, whatever else happens. */
const HEARTBEAT = 'select pg_notify($1, $2)';

export async function tapDatabase(test: Pick<TestContext, 'after'>, target: Target): Promise<DatabaseTap> {
  const statements: string[] = [];
  const lines = new Set<Line>();
  const sockets = new Set<Socket>();
  const server = net.createServer((front) => {
    const back = net.connect(serverOf(target));
    const line = new Line(statements);
    lines.add(line);
    for (const [from, to] of [
      [front, back],
      [back, front],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes: Buffer) => {
        if (from === front) line.asked(bytes);
        else line.answered(bytes);
      });
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        lines.delete(line);
        sockets.delete(from);
      });
    }
  });
  const tapped = await listen(test, server, target);
  server.unref();
  const silent = async () => {
    const before = statements.length;
    // Whoever asks the next thing when the last is answered has done so by then.
    for (let turns = 0; turns < 10; turns++) await turn();
    return statements.length === before && [...lines].every((line) => line.idle);
  };
  return {
    target: tapped,
    statements,
    async quiet() {
      let still = false;
      while (!still) {
        await until(() => [...lines].every((line) => line.idle), 'the database has nothing to do');
        still = await silent();
      }
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export function serverOf(target: Target): net.NetConnectOpts {
  if ('socketFolder' in target) return { path: path.join(target.socketFolder, SOCKET) };
  const { hostname, port } = new URL(target.connectionString);
  return { host: hostname, port: Number(port || 5432) };
}

export async function listen(test: Pick<TestContext, 'after'>, server: net.Server, target: Target): Promise<Target> {
  const socketFolder = emptyFolder(test);
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject).once('listening', listening.resolve);
  if ('socketFolder' in target) server.listen(path.join(socketFolder, SOCKET));
  else server.listen(0, '127.0.0.1');
  await listening.promise;
  if ('socketFolder' in target) return { ...target, socketFolder };
  const url = new URL(target.connectionString);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { connectionString: url.href };
}

/** One connection, as the protocol of PostgreSQL has it: a byte of kind, four of length, and what it says. */
class Line {
  readonly #statements: string[];
  readonly #front = new Messages(true);
  readonly #back = new Messages(false);
  /** What the next execution runs. */
  #parsed = '';
  #unanswered = 0;
  #inTransaction = false;

  constructor(statements: string[]) {
    this.#statements = statements;
  }

  get idle(): boolean {
    return this.#unanswered === 0 && !this.#inTransaction;
  }

  asked(bytes: Buffer): void {
    for (const { kind, body } of this.#front.read(bytes)) {
      if (kind === 'P') this.#parsed = text(body, body.indexOf(0) + 1);
      else if (kind === 'Q') this.#statements.push(text(body, 0));
      else if (kind === 'E' && this.#parsed !== HEARTBEAT) this.#statements.push(this.#parsed);
      // Each of these is answered with the news that the next may come, as the beginning of a connection is.
      if (kind === 'Q' || kind === 'S' || kind === '') this.#unanswered += 1;
    }
  }

  answered(bytes: Buffer): void {
    for (const { kind, body } of this.#back.read(bytes)) {
      if (kind !== 'Z') continue;
      this.#unanswered -= 1;
      this.#inTransaction = body.toString('latin1') !== 'I';
    }
  }
}

function text(body: Buffer, from: number): string {
  return body.toString('utf8', from, body.indexOf(0, from));
}

/** Cuts a stream into messages. */
export class Messages {
  #rest: Buffer = Buffer.alloc(0);
  /** The first message of a client has no kind. */
  #kindless: boolean;

  constructor(kindless: boolean) {
    this.#kindless = kindless;
  }

  *read(bytes: Buffer): Generator<{ kind: string; body: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const start = this.#kindless ? 0 : 1;
      if (this.#rest.length < start + 4) return;
      const end = start + this.#rest.readInt32BE(start);
      if (this.#rest.length < end) return;
      const kind = this.#rest.toString('latin1', 0, start);
      const body = this.#rest.subarray(start + 4, end);
      this.#rest = this.#rest.subarray(end);
      this.#kindless = false;
      yield { kind, body };
    }
  }
}
