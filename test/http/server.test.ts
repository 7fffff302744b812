/** Routes, methods, keys, errors and cross-origin access. */
import assert from 'node:assert/strict';
import { request as tlsRequest } from 'node:https';
import { after, before, describe, test } from 'node:test';
import { head, RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { makeCertificate } from '../../src/testing/upstream/certificate.ts';
import { startTestServer, type TestServer } from './operation-server.ts';

let running: TestServer;
before(async () => {
  running = await startTestServer();
});
after(() => running.server.drain(0));

const KEY = 'Authorization: Bearer inference';
const JSON_BODY = 'Content-Type: application/json';

async function ask(lines: string[], body = '') {
  const client = await RawClient.open(running.port);
  try {
    return await client.ask(body === '' ? lines : [...lines, `Content-Length: ${Buffer.byteLength(body)}`], body);
  } finally {
    client.leave();
  }
}

const messageOf = (response: { json(): unknown }) => (response.json() as { error: { message: string } }).error.message;

describe('routes', () => {
  test('an operation is served under /api/v1 and /v1, a root one at the root only', async () => {
    for (const prefix of ['/api/v1', '/v1']) {
      assert.equal((await ask([`GET ${prefix}/things HTTP/1.1`, KEY])).status, 200);
      assert.equal((await ask([`GET ${prefix}/health HTTP/1.1`])).status, 404);
    }
    assert.equal((await ask(['GET /health HTTP/1.1'])).status, 200);
    assert.equal((await ask(['GET /things HTTP/1.1', KEY])).status, 404);
  });

  const reached: [target: string, id: string, params: Record<string, string>][] = [
    ['/v1/things/current', 'currentThing', {}],
    ['/v1/things/%63urrent', 'currentThing', {}],
    ['/v1/things/other', 'getThing', { id: 'other' }],
    ['/v1/things/a%2Fparts%2Fb', 'getThing', { id: 'a/parts/b' }],
    ['/v1/things/%2e%2e%2fthings', 'getThing', { id: '../things' }],
    ['/v1/things/%252e%252e', 'getThing', { id: '%2e%2e' }],
    ['/v1/things/gr%C3%BC%C3%9Fe', 'getThing', { id: 'grüße' }],
    ['/v1/things/__proto__', 'getThing', { id: '__proto__' }],
    ['/v1/things/current/parts/9', 'thingPart', { id: 'current', part: '9' }],
    ['http://other.test/v1/things/a', 'getThing', { id: 'a' }],
  ];
  for (const [target, id, params] of reached) {
    test(`${target} reaches ${id}`, async () => {
      const response = await ask([`GET ${target} HTTP/1.1`, KEY]);
      assert.equal(response.status, 200);
      const answer = response.json() as { id: string; params: unknown };
      assert.equal(answer.id, id);
      assert.deepEqual(answer.params, params);
    });
  }

  const nowhere = [
    '/',
    '/v1',
    '/v1/',
    '/v1/nothing',
    '/v1/things/',
    '//v1/things',
    '/v1//things',
    '/v1/things/..',
    '/v1/things/%2e%2e',
    '/v1/things/../things',
    '/v1/other/%2e%2e/things',
    '/v1%2Fthings',
    '/v1/things/a/b',
    '/V1/things',
  ];
  for (const target of nowhere) {
    test(`${target} is 404 with the error envelope`, async () => {
      const response = await ask([`GET ${target} HTTP/1.1`, KEY]);
      assert.equal(response.status, 404);
      const { error } = response.json() as { error: Record<string, unknown> };
      assert.equal(error['code'], 404);
      assert.deepEqual(error['metadata'], { error_type: 'not_found' });
    });
  }

  test('broken percent-encoding is 400', async () => {
    assert.equal((await ask(['GET /v1/things/%zz HTTP/1.1', KEY])).status, 400);
    assert.equal((await ask(['GET /v1/things/%ff HTTP/1.1', KEY])).status, 400);
  });

  test('a method that the path does not have is 405 with the allowed methods', async () => {
    const response = await ask(['PUT /v1/things/a HTTP/1.1', KEY]);
    assert.equal(response.status, 405);
    assert.equal(response.headers['allow'], 'GET, HEAD, DELETE, OPTIONS');
    assert.match(messageOf(response), /^method PUT is not allowed here/);
  });

  test('an error before the handler has the format of its path', async () => {
    for (const lines of [
      ['GET /v1/messages HTTP/1.1', KEY],
      ['POST /v1/messages HTTP/1.1', KEY, 'Expect: the-best'],
      ['POST /v1/messages HTTP/1.1', 'Authorization: Bearer wrong'],
    ]) {
      const response = await ask(lines);
      assert.ok(response.status >= 400);
      assert.equal((JSON.parse(response.body.toString()) as { type: unknown }).type, 'error', lines.join());
    }
  });

  test('HEAD gets the headers of GET and no body', async () => {
    const client = await RawClient.open(running.port);
    const response = await client.ask(['HEAD /v1/things HTTP/1.1', KEY]);
    assert.equal(response.status, 200);
    assert.ok(Number(response.headers['content-length']) > 0);
    // The next response on the connection follows at once, so there was no body.
    assert.equal((await client.ask(['GET /v1/things HTTP/1.1', KEY])).status, 200);
    client.leave();
  });

  test('OPTIONS lists the methods of an existing path', async () => {
    const response = await ask(['OPTIONS /v1/things HTTP/1.1']);
    assert.equal(response.status, 204);
    assert.equal(response.headers['allow'], 'GET, HEAD, POST, OPTIONS');
    assert.equal((await ask(['OPTIONS /v1/nothing HTTP/1.1'])).status, 404);
    assert.equal((await ask(['OPTIONS * HTTP/1.1'])).status, 204);
  });

  test('pipelined requests are all answered, in order', async () => {
    const client = await RawClient.open(running.port);
    const get = (id: string) => `GET /v1/things/${id} HTTP/1.1\r\nHost: x\r\n${KEY}\r\n\r\n`;
    const post = `POST /v1/poke HTTP/1.1\r\nHost: x\r\n${KEY}\r\n${JSON_BODY}\r\nContent-Length: 7\r\n\r\n{"a":1}`;
    await client.send(get('one') + post + get('two') + get('three'));
    const answers = [];
    for (let count = 0; count < 4; count += 1)
      answers.push((await client.response()).json() as Record<string, unknown>);
    assert.deepEqual(
      answers.map(({ id, params, body }) => ({ id, params, body })),
      [
        { id: 'getThing', params: { id: 'one' }, body: null },
        { id: 'poke', params: {}, body: { a: 1 } },
        { id: 'getThing', params: { id: 'two' }, body: null },
        { id: 'getThing', params: { id: 'three' }, body: null },
      ],
    );
    client.leave();
  });
});

describe('keys', () => {
  test('a missing and an unknown key are 401 with a challenge, before the operation is checked', async () => {
    for (const lines of [[], ['Authorization: Bearer wrong'], ['Authorization: Bearer slow-wrong']]) {
      const response = await ask(['GET /v1/things?limit=x HTTP/1.1', ...lines]);
      assert.equal(response.status, 401);
      assert.equal(response.headers['www-authenticate'], 'Bearer');
      assert.equal((response.json() as { user_id?: string }).user_id, undefined);
    }
  });

  test("a key of the wrong kind is 403, and the envelope has the account's id", async () => {
    const inference = await ask(['DELETE /v1/things/a HTTP/1.1', KEY]);
    assert.equal(inference.status, 403);
    assert.equal((inference.json() as { user_id: string }).user_id, 'user_1');
    const management = await ask(['POST /v1/chat HTTP/1.1', 'Authorization: Bearer management', JSON_BODY], '{}');
    assert.equal(management.status, 403);
  });

  test('an asynchronous authentication works too', async () => {
    const response = await ask(
      ['POST /v1/poke HTTP/1.1', 'Authorization: Bearer slow-inference', JSON_BODY],
      '{"a":1}',
    );
    assert.deepEqual((response.json() as { body: unknown }).body, { a: 1 });
  });

  test('an authentication that is unavailable is 503 with a Retry-After in whole seconds', async () => {
    const response = await ask(['GET /v1/things HTTP/1.1', 'Authorization: Bearer down']);
    assert.equal(response.status, 503);
    assert.equal(response.headers['retry-after'], '2');
  });
});

describe('errors', () => {
  test('an error carries type, metadata, availability and Retry-After', async () => {
    const response = await ask(['GET /v1/refuse HTTP/1.1', KEY]);
    assert.equal(response.status, 429);
    assert.equal(response.headers['retry-after'], '7');
    assert.deepEqual(response.json(), {
      error: {
        code: 429,
        message: 'slow down',
        metadata: { provider_name: 'Acme', error_type: 'rate_limit_exceeded' },
        availability: { code: 'capacity_exhausted', retryable: true, docs_url: '/docs' },
      },
      user_id: 'user_1',
    });
  });

  test('an unknown failure is a 500 that shows only the request id, and is logged with its cause', async () => {
    for (const path of ['/v1/fail', '/v1/fail-later']) {
      const response = await ask([`GET ${path} HTTP/1.1`, KEY, 'X-Request-Id: trace-7']);
      assert.equal(response.status, 500);
      assert.equal(response.headers['x-request-id'], 'trace-7');
      assert.match(messageOf(response), /trace-7/);
      assert.doesNotMatch(response.body, /hunter2|later|Error:/);
    }
    const logged = running.lines.join('');
    assert.match(logged, /hunter2/);
    assert.match(logged, /"request_id":"trace-7","operation":"failLater"/);
  });

  test('headers prepared for a response are removed from an error, except for the generation id', async () => {
    const response = await ask(['GET /v1/fail-prepared HTTP/1.1', KEY, 'Origin: https://app.test']);
    assert.equal(response.status, 502);
    assert.equal(messageOf(response), 'the upstream is gone');
    assert.equal(response.headers['content-encoding'], undefined);
    assert.equal(response.headers['x-generation-id'], 'gen-1');
    assert.equal(response.headers['access-control-allow-origin'], '*');
  });

  test('a failure in the middle of a response cuts the connection instead of ending it cleanly', async () => {
    const client = await RawClient.open(running.port);
    await client.send(`GET /v1/break HTTP/1.1\r\nHost: x\r\n${KEY}\r\n\r\n`);
    await assert.rejects(client.response(), /connection ended/);
  });

  test('an operation with its own error format uses it also for errors before its handler', async () => {
    const response = await ask(['POST /v1/messages HTTP/1.1', 'X-Request-Id: r1', JSON_BODY], '{}');
    assert.equal(response.status, 401);
    assert.deepEqual(response.json(), { type: 'error', message: 'The API key is not known.', request_id: 'r1' });
  });

  test('input that is not HTTP gets a 400 with the error envelope', async () => {
    const client = await RawClient.open(running.port);
    await client.send('\x16\x03\x01 hello\r\n\r\n');
    const response = await client.response();
    assert.equal(response.status, 400);
    assert.equal(messageOf(response), 'this is not a valid HTTP request');
    await client.closed;
  });

  test('CONNECT is 400, and ends a connection on which other requests are not answered', async () => {
    const client = await RawClient.open(running.port);
    const response = await client.ask(['CONNECT api.test:443 HTTP/1.1', KEY]);
    assert.equal(response.status, 400);
    assert.match(messageOf(response), /not a proxy/);
    await client.closed;
    const busy = await RawClient.open(running.port);
    await busy.send(head(['POST /v1/wait HTTP/1.1', KEY]) + head(['CONNECT api.test:443 HTTP/1.1', KEY]));
    await busy.closed;
  });

  test('a length together with a transfer encoding, and a missing host, are 400', async () => {
    const smuggled = await ask([
      'POST /v1/poke HTTP/1.1',
      KEY,
      JSON_BODY,
      'Content-Length: 2',
      'Transfer-Encoding: chunked',
    ]);
    assert.equal(smuggled.status, 400);
    const client = await RawClient.open(running.port);
    await client.send(`GET /v1/things HTTP/1.1\r\n${KEY}\r\n\r\n`);
    const response = await client.response();
    assert.equal(response.status, 400);
    assert.match(messageOf(response), /host is missing/);
    client.leave();
  });

  test('a duplicate host or credential and an invalid host are 400', async () => {
    const twice = [
      ['GET /health HTTP/1.1', 'hoSt: other'],
      ['GET /v1/things HTTP/1.1', KEY, KEY],
      ['GET /v1/things HTTP/1.1', KEY, 'AUTHORIZATION: Bearer other'],
      ['GET /v1/things HTTP/1.1', 'x-api-key: a', 'X-Api-Key: a'],
    ];
    for (const lines of twice) {
      const response = await ask(lines);
      assert.equal(response.status, 400, lines.join());
      assert.match(messageOf(response), /is given more than once/);
    }
    for (const [host, status] of [
      ['a b', 400],
      ['a/b', 400],
      ['user@a', 400],
      ['a:b', 400],
      ['', 200],
      ['eu.gateway.example:8484', 200],
      ['127.0.0.1', 200],
      ['[::1]:8484', 200],
    ] as const) {
      const client = await RawClient.open(running.port);
      await client.send(`GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      assert.equal((await client.response()).status, status, host);
      client.leave();
    }
  });

  test('an unknown expectation is 417', async () => {
    assert.equal((await ask(['GET /v1/things HTTP/1.1', KEY, 'Expect: the-best'])).status, 417);
  });
});

describe('request ids', () => {
  test('an id is generated, and differs each time, when none is given', async () => {
    const first = await ask(['GET /health HTTP/1.1']);
    const second = await ask(['GET /health HTTP/1.1']);
    assert.match(first.headers['x-request-id'] ?? '', /^[\w-]{20,}$/);
    assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id']);
  });

  test('a valid id is kept, any other is replaced', async () => {
    assert.equal((await ask(['GET /health HTTP/1.1', 'X-Request-Id: a.b:c-1'])).headers['x-request-id'], 'a.b:c-1');
    for (const id of ['x'.repeat(129), 'a b', '<script>', '"']) {
      const response = await ask(['GET /health HTTP/1.1', `X-Request-Id: ${id}`]);
      assert.notEqual(response.headers['x-request-id'], id);
      assert.ok(response.headers['x-request-id']);
    }
  });
});

describe('cross-origin access', () => {
  test('a preflight is answered without a key, for any path, with the requested headers', async () => {
    const response = await ask([
      'OPTIONS /v1/chat HTTP/1.1',
      'Origin: https://app.test',
      'Access-Control-Request-Method: POST',
      'Access-Control-Request-Headers: authorization, content-type, x-stainless-os',
    ]);
    assert.equal(response.status, 204);
    assert.equal(response.headers['access-control-allow-origin'], '*');
    assert.equal(response.headers['access-control-allow-headers'], 'authorization, content-type, x-stainless-os');
    assert.match(response.headers['access-control-allow-methods'] ?? '', /POST/);
    assert.equal(response.headers['access-control-allow-credentials'], undefined);
  });

  test('replies and errors can be read by the page that asked, and others carry no such headers', async () => {
    const error = await ask(['GET /v1/things HTTP/1.1', 'Origin: https://app.test']);
    assert.equal(error.status, 401);
    assert.equal(error.headers['access-control-allow-origin'], '*');
    assert.equal(error.headers['access-control-expose-headers'], '*');
    const plain = await ask(['GET /v1/things HTTP/1.1', KEY]);
    assert.equal(plain.headers['access-control-allow-origin'], undefined);
  });
});

test('with a certificate the server speaks TLS', async (context) => {
  const certificate = makeCertificate();
  if (!certificate) return context.skip('openssl is not installed');
  const secure = await startTestServer({ tls: certificate });
  const status = await new Promise((resolve, reject) => {
    const options = { ca: certificate.cert, headers: { authorization: 'Bearer inference' }, agent: false };
    tlsRequest(`${secure.url}/v1/things`, options, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
  assert.equal(status, 200);
  await secure.server.drain(1000);
});

test('a client that leaves a download is not logged as a failure', async () => {
  const client = await RawClient.open(running.port);
  await client.send('GET /v1/endless HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer inference\r\n\r\n');
  await client.read('xxx');
  client.leave();
  await until(() => running.lines.includes('download: Premature close'), 'the download has ended');
  await ask(['GET /health HTTP/1.1']);
  assert.deepEqual(
    running.lines.filter((line) => line.includes('request failed') && line.includes('endless')),
    [],
  );
});
