/** A gateway that is killed where results may be counted twice; at every step: the scale test. */
import { test } from 'node:test';
import { killAtSteps, OPENAI_STEPS } from './native-batch-kill.ts';

test('a process killed during a native batch submits, loses and pays nothing twice', (t) =>
  killAtSteps(t, 'openai', OPENAI_STEPS, { only: ['while it reads results'] }));
