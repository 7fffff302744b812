import { test } from 'node:test';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { type Fallen, killForwarding } from './intern-forward-kill.ts';

/** Set `ROUNDS` for more. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 3);
const ORDER: readonly Fallen[] = ['holder', 'forwarder', 'both', 'holder', 'both', 'forwarder'];

test('whoever is killed while a run is forwarded, its intern is taken over and nothing runs twice', { skip }, (t) =>
  killForwarding(t, Array.from({ length: ROUNDS }, () => ORDER).flat()),
);
