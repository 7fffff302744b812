/** A gateway that is killed at every step of a native batch, at providers with an interface of their own. */
import { test } from 'node:test';
import { killAtEveryStep } from './native-batch-kill.ts';

test('a process killed at any step of a batch of Bedrock submits, loses and pays nothing twice', (t) =>
  killAtEveryStep(t, 'bedrock', {
    isUpload: ({ method }) => method === 'PUT',
    isCreation: ({ method, path }) => method === 'POST' && path === '/model-invocation-job',
    isPoll: ({ method, path }) => method === 'GET' && path.startsWith('/model-invocation-job/'),
    isResults: ({ method, path }) => method === 'GET' && path.endsWith('.jsonl.out'),
  }));

test('a process killed at any step of a batch of Vertex AI submits, loses and pays nothing twice', (t) =>
  killAtEveryStep(t, 'vertex', {
    isUpload: ({ path }) => path.startsWith('/upload/'),
    isCreation: ({ method, path }) => method === 'POST' && path.endsWith('/batchPredictionJobs'),
    isPoll: ({ method, path }) => method === 'GET' && /\/batchPredictionJobs\/\w/.test(path),
    isResults: ({ path }) => path.endsWith('predictions.jsonl?alt=media'),
  }));

test('a process killed at any step of a batch of xAI submits, loses and pays nothing twice', (t) =>
  killAtEveryStep(
    t,
    'xai',
    {
      isUpload: ({ method, path }) => method === 'POST' && path === '/files',
      isCreation: ({ method, path }) => method === 'POST' && path === '/batches',
      isPoll: ({ method, path }) => method === 'GET' && /^\/batches\/[^/?]+$/.test(path),
      isResults: ({ path }) => path.includes('/results?'),
    },
    80,
  ));
