import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DirectTarget } from '../direct/index.ts';
import { publicVideos } from './index.ts';

test('a job that fails for its content is no fault of the service', () => {
  const request = { prompt: 'x', references: [], extras: {}, options: {} };
  const { read } = publicVideos.start(request, { model: 'm', user: 'u' } as DirectTarget);
  const kindOf = (error: unknown) => {
    const body = Buffer.from(JSON.stringify({ id: 'v_1', status: 'failed', error }));
    const step = read({ status: 200, headers: {}, body });
    return 'failure' in step ? step.failure.kind : undefined;
  };
  assert.equal(kindOf({ code: 'moderation_blocked', message: 'no' }), 'content_filter');
  assert.equal(kindOf({ type: 'content_policy_violation' }), 'content_filter');
  for (const error of [{ code: 'internal_error' }, 'broken', undefined]) assert.equal(kindOf(error), 'server');
});
