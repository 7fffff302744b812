/** A gateway that is killed at every step of a native batch. */
import { test } from 'node:test';
import { killAtEveryStep } from './native-batch-kill.ts';

test('a process killed at any step of a native batch submits, loses and pays nothing twice', (t) =>
  killAtEveryStep(t, 'openai', {
    isUpload: ({ method, path }) => method === 'POST' && path === '/files',
    isCreation: ({ method, path }) => method === 'POST' && path === '/batches',
    isPoll: ({ method, path }) => method === 'GET' && /^\/batches\/./.test(path),
    isResults: ({ path }) => /^\/files\/out-.*\/content$/.test(path),
  }));
