/**
 * The network between a gateway and its database, which tests can break: connections for change notifications (two per
 * process, one to listen and one to send) separately from those of the pool.
 */
import net, { type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { Target } from '../../src/storage/connection.ts';
import { listen, Messages, serverOf } from '../../src/testing/database/database-tap.ts';

export type Part = 'listener' | 'pool';

interface Connection {
  front: Socket;
  back: Socket;
  part: Part;
}

const NOTIFICATION = 'A';
/** What the listener calls itself until it has its name. */
const LISTENER = 'gatehouse/connecting';

export class DatabaseLine {
  readonly target: Target;
  /** As a pooler in transaction mode: notifications are dropped, everything else passes. */
  dropsNotifications = false;
  readonly #connections = new Set<Connection>();
  readonly #refused = new Set<Part>();
  readonly #swallowed = new Set<Part>();

  private constructor(target: Target) {
    this.target = target;
  }

  static async open(test: Pick<TestContext, 'after'>, target: Target): Promise<DatabaseLine> {
    let line: DatabaseLine | undefined;
    const server = net.createServer((front) => line?.connected(front, target));
    line = new DatabaseLine(await listen(test, server, target));
    server.unref();
    test.after(() => {
      server.close();
      for (const part of ['listener', 'pool'] as const) line?.cut(part);
    });
    return line;
  }

  /** Ends the connections of a part. */
  cut(part: Part): void {
    for (const { front, back, part: its } of this.#connections) {
      if (its !== part) continue;
      front.destroy();
      back.destroy();
    }
  }

  /** New connections of a part end at once. */
  refuse(part: Part): void {
    this.#refused.add(part);
  }

  /** Nothing passes on connections of a part any more, in either direction, and none of them ends. */
  swallow(part: Part): void {
    this.#swallowed.add(part);
  }

  /** New connections work. What was swallowed is lost, so the connections of before end. */
  mend(): void {
    this.dropsNotifications = false;
    this.#refused.clear();
    for (const part of this.#swallowed) this.cut(part);
    this.#swallowed.clear();
  }

  connected(front: Socket, target: Target): void {
    const back = net.connect(serverOf(target));
    const connection: Connection = { front, back, part: 'pool' };
    const answers = new Messages(false);
    let begun = false;
    front.on('data', (bytes: Buffer) => {
      // The first message names the application.
      if (!begun && bytes.includes(LISTENER)) connection.part = 'listener';
      begun = true;
      if (this.#refused.has(connection.part) && !this.#connections.has(connection)) return void front.destroy();
      this.#connections.add(connection);
      if (!this.#swallowed.has(connection.part)) back.write(bytes);
    });
    back.on('data', (bytes: Buffer) => {
      const passed = [...answers.read(bytes)].filter(({ kind }) => !(this.dropsNotifications && kind === NOTIFICATION));
      if (!this.#swallowed.has(connection.part)) for (const message of passed) front.write(encoded(message));
    });
    // Where nothing passes, an end does not either.
    const ended = (other: Socket) => () => {
      if (!this.#swallowed.has(connection.part)) other.destroy();
    };
    back.on('error', ended(front)).on('close', ended(front));
    front.on('error', ended(back)).on('close', () => {
      this.#connections.delete(connection);
      back.destroy();
    });
  }
}

function encoded({ kind, body }: { kind: string; body: Buffer }): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 0, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
