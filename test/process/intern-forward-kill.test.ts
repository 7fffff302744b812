import { test } from 'node:test';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { killForwarding } from './intern-forward-kill.ts';

test(
  'a process that holds an intern is killed: the run is severed, the other takes over, nothing runs twice',
  {
    skip,
  },
  (t) => killForwarding(t, ['holder']),
);
