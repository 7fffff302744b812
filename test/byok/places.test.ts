/** A BYOK credential of a cloud reaches the project that it belongs to, through a whole gateway. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { serviceAccount } from '../../src/testing/upstream/service-account.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';
import { controlOf } from '../workspaces/control.ts';

async function vertexScene(t: TestContext) {
  const tokens = await startUpstream();
  t.after(() => tokens.close());
  tokens.script('token', [
    { ...wholeOf({ access_token: 'token', expires_in: 3600, token_type: 'Bearer' }), repeat: true },
  ]);
  const vertex = { kind: 'vertex', project: 'gateway-project', sign_in_url: `${tokens.url}` };
  return startGateway(t, {
    providers: {
      v: { ...vertex, api_key: serviceAccount(), model: { id: 'test/v', upstream_id: 'gemini-2.5-flash' } },
    },
  });
}

test("a service account's calls go to its own project", async (t) => {
  const gateway = await vertexScene(t);
  const control = controlOf(gateway);
  gateway.upstream.script('v', [{ ...wholeOf({}), repeat: true }]);
  const key = await control.keyIn(undefined, 'caller');
  await key.ask({ model: 'test/v' });
  const given = await control.call('POST', '/byok', {
    provider: 'v',
    key: serviceAccount({ project_id: 'own-project' }),
  });
  assert.equal(given.status, 201, JSON.stringify(given.body));
  await key.ask({ model: 'test/v' });
  const projects = gateway.upstream
    .requests('v')
    .map(({ path }) => /projects\/([^/]+)\/locations\/([^/]+)/.exec(path)?.slice(1));
  assert.deepEqual(projects.slice(0, 2), [
    ['gateway-project', 'global'],
    ['own-project', 'global'],
  ]);
});
