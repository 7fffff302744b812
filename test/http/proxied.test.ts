/** A gateway behind a proxy: the regional root and the links use the client's host and protocol. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const FORWARDED = { 'x-forwarded-host': 'eu.gate.test', 'x-forwarded-proto': 'https' };

/** The region that a response names, and the address that the feed of models names. */
async function seenThrough(t: TestContext, trusted: readonly string[]) {
  const gateway = await startGateway(t, { yaml: { hosts: { europe: ['eu.gate.test'] }, trusted_proxies: trusted } });
  const question = { model: 'simulated/echo', messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await gateway.post('/chat/completions', question, { ...FORWARDED, 'x-svc-metadata': 'enabled' });
  const { svc_metadata } = (await answer.json()) as { svc_metadata: { region: string } };
  const headers = { ...FORWARDED, authorization: `Bearer ${INFERENCE_KEY}` };
  const feed = await (await fetch(`${gateway.api}/models?use_rss=true`, { headers })).text();
  return { region: svc_metadata.region, link: /<link>([^<]*)</.exec(feed)?.[1], own: `${gateway.api}/models` };
}

test('behind a trusted proxy the region and the links are those of the host that the client asked for', async (t) => {
  const { region, link } = await seenThrough(t, ['127.0.0.0/8']);
  assert.equal(region, 'europe');
  assert.equal(link, 'https://eu.gate.test/api/v1/models');
});

test('an untrusted client cannot choose its region by a header', async (t) => {
  const { region, link, own } = await seenThrough(t, ['10.0.0.0/8']);
  assert.equal(region, 'global');
  assert.equal(link, own);
});
