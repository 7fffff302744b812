/** A gateway that is killed at every step of a native batch. */
import { test } from 'node:test';
import { killAtSteps, OPENAI_STEPS } from './native-batch-kill.ts';

test('a process killed at any step of a batch of OpenAI submits, loses and pays nothing twice', (t) =>
  killAtSteps(t, 'openai', OPENAI_STEPS));

test('a process killed at any step of a batch of Bedrock submits, loses and pays nothing twice', (t) =>
  killAtSteps(t, 'bedrock', {
    isUpload: ({ method }) => method === 'PUT',
    isCreation: ({ method, path }) => method === 'POST' && path === '/model-invocation-job',
    isPoll: ({ method, path }) => method === 'GET' && path.startsWith('/model-invocation-job/'),
    isResults: ({ method, path }) => method === 'GET' && path.endsWith('.jsonl.out'),
  }));

test('a process killed at any step of a batch of Vertex AI submits, loses and pays nothing twice', (t) =>
  killAtSteps(t, 'vertex', {
    isUpload: ({ path }) => path.startsWith('/upload/'),
    isCreation: ({ method, path }) => method === 'POST' && path.endsWith('/batchPredictionJobs'),
    isPoll: ({ method, path }) => method === 'GET' && /\/batchPredictionJobs\/\w/.test(path),
    isResults: ({ path }) => path.endsWith('predictions.jsonl?alt=media'),
  }));

test('a process killed at any step of a batch of xAI submits, loses and pays nothing twice', (t) =>
  killAtSteps(
    t,
    'xai',
    {
      isUpload: ({ method, path }) => method === 'POST' && path === '/files',
      isCreation: ({ method, path }) => method === 'POST' && path === '/batches',
      isPoll: ({ method, path }) => method === 'GET' && /^\/batches\/[^/?]+$/.test(path),
      isResults: ({ path }) => path.includes('/results?'),
    },
    { percent: 80 },
  ));
