/** A tunnel to a host without bound secrets: bytes pass as they are. */
import type net from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { Refusal } from '../refusal.ts';
import type { SecretTexts } from '../text/release.ts';
import { Watcher } from '../text/watcher.ts';
import { endWhenIdle } from './idle.ts';

/** The first byte of a TLS connection. Everything after it is encrypted. */
const TLS_HANDSHAKE = 0x16;

interface Tunnel {
  client: net.Socket;
  upstream: net.Socket;
  clock: Clock;
  texts: SecretTexts;
  /** Called when a placeholder has ended the tunnel. */
  refused(refusal: Refusal): void;
}

/** Joins both ends until they close. A placeholder in bytes that are not encrypted ends the tunnel. */
export function tunnel({ client, upstream, clock, texts, refused }: Tunnel): void {
  let watcher: Watcher | undefined;
  let isFirst = true;
  client.on('data', (chunk: Buffer) => {
    if (isFirst && chunk[0] !== TLS_HANDSHAKE) watcher = new Watcher(texts.placeholders);
    isFirst = false;
    const secret = watcher?.sees(chunk);
    if (secret === undefined) return;
    const { name } = texts.secrets[secret]!;
    refused(new Refusal('secret_elsewhere', `The secret ${name} is not released without TLS.`, name));
    client.destroy();
    upstream.destroy();
  });
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  client.on('error', end).once('close', end);
  upstream.on('error', end).once('close', () => client.destroySoon());
  endWhenIdle(clock, [client, upstream]);
  // The listener for data above comes first, so nothing that it refuses is written.
  client.pipe(upstream);
  upstream.pipe(client);
}
