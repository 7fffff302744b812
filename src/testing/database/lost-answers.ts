/**
 * A connection to the database that breaks at the worst moment: the server runs a statement, and its answer is lost. So
 * the sender cannot know whether it ran.
 */
import net from 'node:net';
import type { TestContext } from 'node:test';
import type { Target } from '../../storage/connection.ts';
import { listen, Messages, serverOf } from './database-tap.ts';

/** @param transaction the statements before it in its transaction */
type IsLost = (statement: string, transaction: readonly string[]) => boolean;

export interface LostAnswers {
  readonly target: Target;
  /** The statements whose answers were lost. */
  readonly lost: readonly string[];
  /** Loses the next answer to such a statement. `isLost` may count: it is asked once for each statement. */
  lose(isLost: IsLost): void;
  /** From now on every answer arrives. */
  stop(): void;
}

export async function losingAnswers(test: Pick<TestContext, 'after'>, target: Target): Promise<LostAnswers> {
  let wanted: IsLost | undefined;
  const lost: string[] = [];
  const ends = new Set<() => void>();
  const server = net.createServer((front) => {
    const back = net.connect(serverOf(target));
    const [asked, answered] = [new Messages(true), new Messages(false)];
    let transaction: string[] = [];
    let parsed = '';
    let isDoomed = false;
    const sent = (statement: string) => {
      if (!isDoomed && wanted?.(statement, transaction)) {
        wanted = undefined;
        lost.push(statement);
        isDoomed = true;
      }
      if (statement === 'begin' || statement === 'commit') transaction = [];
      else transaction.push(statement);
    };
    const end = () => {
      front.destroy();
      back.destroy();
      ends.delete(end);
    };
    ends.add(end);
    front.on('data', (bytes: Buffer) => {
      for (const { kind, body } of asked.read(bytes)) {
        if (kind === 'P') parsed = text(body, body.indexOf(0) + 1);
        else if (kind === 'Q') sent(text(body, 0));
        else if (kind === 'E') sent(parsed);
      }
      back.write(bytes);
    });
    back.on('data', (bytes: Buffer) => {
      if (!isDoomed) return void front.write(bytes);
      for (const { kind } of answered.read(bytes)) if (kind === 'Z') end();
    });
    for (const socket of [front, back]) socket.on('error', end).on('close', end);
  });
  const losing = await listen(test, server, target);
  server.unref();
  test.after(() => {
    server.close();
    for (const end of [...ends]) end();
  });
  return {
    target: losing,
    lost,
    lose(isLost) {
      wanted = isLost;
    },
    stop() {
      wanted = undefined;
    },
  };
}

function text(body: Buffer, from: number): string {
  return body.toString('utf8', from, body.indexOf(0, from));
}
