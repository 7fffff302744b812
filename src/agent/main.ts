/** The agent's process: `node main.js SETTINGS`. The protocol runs on standard input and output; errors go to standard error. */
import { homedir } from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { ndJsonStream } from '@agentclientprotocol/sdk/unstable';
import { stayAlive, systemClock } from '../base/clock.ts';
import { agentApp } from './app.ts';
import { readSettings } from './settings.ts';

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: agent SETTINGS');
  process.exit(64);
}
const app = agentApp({
  settings: readSettings(file),
  clock: systemClock,
  sessionFolder: path.join(homedir(), '.gatehouse-agent', 'sessions'),
});
const release = stayAlive();
const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
const connection = app.connect(ndJsonStream(Writable.toWeb(process.stdout), input));
await connection.closed;
release();
process.exit(0);
