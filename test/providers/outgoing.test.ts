/** Settings of outgoing connections through whole gateways: the proxy, its exceptions, an additional authority. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { makeCertificate } from '../../src/testing/upstream/certificate.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';
import { startProxy } from './proxy.ts';

const NAME = 'upstream.example';
const PASSWORD = 'pr@xy-canary-99';
const certificate = makeCertificate(`DNS:${NAME},IP:127.0.0.1`);
const options = { skip: certificate === null && 'the openssl program is missing' };
const BODY = { messages: [{ role: 'user', content: 'x' }] };

test('calls go through HTTPS_PROXY to an upstream that an authority of the operator has signed', options, async (t) => {
  const upstream = await startUpstream({ tls: certificate! });
  t.after(() => upstream.close());
  const base = upstream.script('a', wholeOf(chatReply({ text: 'through' })));
  const proxy = await startProxy(t, { password: PASSWORD });
  const port = new URL(upstream.url).port;
  const gateway = await startGateway(t, {
    providers: {
      far: { base_url: base.replace('127.0.0.1', NAME) },
      near: { base_url: base },
      excepted: { base_url: base.replace('127.0.0.1', `none.${NAME}`) },
    },
    env: { HTTPS_PROXY: proxy.url, NO_PROXY: `none.${NAME}`, GATEHOUSE_CA_FILE: 'ca.pem' },
    files: { 'ca.pem': certificate!.cert },
  });
  assert.equal((await ask(gateway, 'chat', 'test/far', BODY)).json.choices[0].message.content, 'through');
  assert.deepEqual(
    proxy.asked.map(({ place }) => place),
    [`${NAME}:${port}`],
  );
  assert.equal((await ask(gateway, 'chat', 'test/near', BODY)).status, 200);
  const { status, text } = await ask(gateway, 'chat', 'test/excepted', BODY);
  assert.equal(status, 502);
  assert.doesNotMatch(text, /canary/);
  assert.equal(proxy.asked.length, 1);
});
