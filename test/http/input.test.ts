/** Bad input through a socket: the right status, the field's path in the message, and the process keeps running. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { RawClient, type RawResponse } from '../../src/testing/clients/raw-client.ts';
import { startTestServer, type TestServer } from './operation-server.ts';

let running: TestServer;
before(async () => {
  running = await startTestServer();
});
after(() => running.server.drain(0));

const JSON_TYPE = 'Content-Type: application/json';

async function post(
  path: string,
  body: string | Buffer,
  lines: string[] = [JSON_TYPE],
  key = 'inference',
): Promise<RawResponse> {
  const client = await RawClient.open(running.port);
  try {
    const bytes = Buffer.from(body as string);
    const all = [`POST ${path} HTTP/1.1`, `Authorization: Bearer ${key}`, ...lines, `Content-Length: ${bytes.length}`];
    return await client.ask(all, bytes);
  } finally {
    client.leave();
  }
}

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

function messageOf(response: RawResponse): string {
  const { error } = response.json() as { error: { code: number; message: string; metadata: { error_type: string } } };
  assert.equal(error.code, response.status);
  assert.ok(error.metadata.error_type);
  return error.message;
}

describe('a refused body is reported with the path of the field', () => {
  const user = (content: string) => `{"messages":[{"role":"user","content":${content}}]}`;
  const cases: [name: string, body: string | Buffer, message: string | RegExp][] = [
    [
      'invalid UTF-8',
      Buffer.concat([Buffer.from('{"messages":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      'the body is not valid UTF-8 at byte 13',
    ],
    [
      'invalid JSON',
      user('"a}'),
      /^the body is not valid JSON: it ends inside a string at byte \d+ \(messages\[0\]\.content\)$/,
    ],
    ['__proto__', user('[{"__proto__":{"x":1}}]'), 'messages[0].content[0] must not have the key "__proto__"'],
    [
      'a key twice',
      user('[{"type":"text","type":"text","text":""}]'),
      'messages[0].content[0] has the key "type" twice',
    ],
    [
      '10^5 levels',
      `{"messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      /^messages\[0\].* is nested deeper than 128 levels$/,
    ],
    ['an array', '[]', 'the body must be a JSON object'],
    ['a missing field', '{}', 'messages is required'],
    ['an empty list', '{"messages":[]}', 'messages must have at least 1 item'],
    ['a wrong kind', '{"model":3,"messages":[]}', 'model must be a string'],
    ['a wrong kind inside', user('[{"type":"text","text":3}]'), 'messages[0].content[0].text must be a string'],
    ['none of several kinds', user('3'), 'messages[0].content must be a string or an array'],
    ['an unknown tag', '{"messages":[{"role":"boss","content":""}]}', 'messages[0].role must be one of "user", "tool"'],
    [
      'an unknown tag inside',
      user('[{"type":"video"}]'),
      'messages[0].content[0].type must be one of "text", "image_url"',
    ],
    ['a missing tag', '{"messages":[{"content":""}]}', 'messages[0].role is required'],
    [
      'a field required by the tag',
      '{"messages":[{"role":"tool","content":""}]}',
      'messages[0].tool_call_id is required',
    ],
    [
      'an unknown enum',
      user('"a"').replace(/}$/, ',"effort":"most"}'),
      'effort must be one of "low", "medium", "high"',
    ],
    ['a number too large', user('"a"').replace(/}$/, ',"temperature":3}'), 'temperature must be at most 2'],
    ['a text for a number', user('"a"').replace(/}$/, ',"temperature":"1"}'), 'temperature must be a number or null'],
    [
      'a text too long',
      user('"a"').replace(/}$/, `,"model":"${'é'.repeat(21)}"}`),
      'model must have at most 20 characters',
    ],
    ['an infinite number', user('"a"').replace(/}$/, ',"temperature":1e999}'), 'temperature must be a number or null'],
  ];
  for (const [name, body, message] of cases) {
    test(`${name}: 400`, async () => {
      const response = await post('/v1/chat', body);
      assert.equal(response.status, 400, response.body);
      if (typeof message === 'string') assert.equal(messageOf(response), message);
      else assert.match(messageOf(response), message);
    });
  }

  test('an unknown field of a closed schema: 400', async () => {
    const response = await post('/v1/things', '{"name":"ab","naem":1}', [JSON_TYPE], 'management');
    assert.equal(messageOf(response), 'naem is not a known field');
  });

  test('a required body that is missing: 400; an optional one may be missing, empty or chunked empty', async () => {
    assert.equal(messageOf(await post('/v1/chat', '')), 'the body is missing');
    assert.equal((await post('/v1/poke', '')).status, 200);
    const client = await RawClient.open(running.port);
    const lines = [
      'POST /v1/poke HTTP/1.1',
      'Authorization: Bearer inference',
      JSON_TYPE,
      'Transfer-Encoding: chunked',
    ];
    const response = await client.ask(lines, '0\r\n\r\n');
    assert.deepEqual((response.json() as { body: unknown }).body, null);
    client.leave();
  });

  test('the server still responds after all of them', async () => {
    assert.equal((await post('/v1/chat', user('"hello"'))).status, 200);
  });
});

describe('correct input is not refused for its spelling', () => {
  test('twenty two-byte characters fit into a limit of twenty', async () => {
    const response = await post('/v1/chat', `{"model":"${'é'.repeat(20)}","messages":[{"role":"user","content":"ü"}]}`);
    assert.equal(response.status, 200);
    assert.equal((response.json() as { body: { model: string } }).body.model, 'é'.repeat(20));
  });

  test('one two-byte character does not count as two characters', async () => {
    const response = await post('/v1/things', '{"name":"é"}', [JSON_TYPE], 'management');
    assert.equal(messageOf(response), 'name must have at least 2 characters');
  });

  test('the content type may name UTF-8 and a variant of JSON', async () => {
    for (const type of [
      'application/json; charset=utf-8',
      'Application/JSON;charset="UTF-8"',
      'application/scim+json',
    ]) {
      assert.equal((await post('/v1/poke', '{}', [`Content-Type: ${type}`])).status, 200, type);
    }
  });

  test('a body in single bytes and in chunks gives the same result as in one piece', async () => {
    const body = Buffer.from('{"messages":[{"role":"user","content":"grüße 😀"}]}');
    const lines = [
      'POST /v1/chat HTTP/1.1',
      'Authorization: Bearer inference',
      JSON_TYPE,
      'Transfer-Encoding: chunked',
    ];
    const whole = (await post('/v1/chat', body)).body;
    for (const size of [1, 7, 1000]) {
      const client = await RawClient.open(running.port);
      assert.equal((await client.ask(lines, chunked(body, size))).body, whole);
      client.leave();
    }
    const client = await RawClient.open(running.port);
    await client.send(
      `POST /v1/chat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer inference\r\n${JSON_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    for (const byte of body) await client.send(Buffer.from([byte]));
    assert.equal((await client.response()).body, whole);
    client.leave();
  });

  test('a body of many reads is complete', async () => {
    const content = 'ü'.repeat(900_000);
    const response = await post('/v1/chat', JSON.stringify({ messages: [{ role: 'user', content }] }));
    assert.equal(response.status, 200);
    assert.equal((response.json() as { body: { messages: { content: string }[] } }).body.messages[0]?.content, content);
  });
});

describe('media', () => {
  test('anything but JSON in UTF-8 is 415', async () => {
    for (const lines of [
      [],
      ['Content-Type: text/plain'],
      ['Content-Type: application/x-www-form-urlencoded'],
      ['Content-Type: multipart/form-data; boundary=x'],
      ['Content-Type: application/jsonp'],
      ['Content-Type: application/json; charset=utf-16'],
    ]) {
      const response = await post('/v1/chat', '{"messages":[]}', lines);
      assert.equal(response.status, 415, lines.join());
      assert.match(messageOf(response), /content-type must be application\/json/);
    }
  });

  test('a compressed body is 415, however small', async () => {
    for (const encoding of ['gzip', 'deflate', 'br', 'gzip, identity']) {
      const response = await post('/v1/chat', gzipSync('{}'), [JSON_TYPE, `Content-Encoding: ${encoding}`]);
      assert.equal(response.status, 415);
      assert.equal(response.headers['accept-encoding'], 'identity');
    }
  });

  test('so is one with another transfer encoding than chunked', async () => {
    const client = await RawClient.open(running.port);
    const lines = ['POST /v1/chat HTTP/1.1', 'Authorization: Bearer inference', JSON_TYPE];
    const response = await client.ask([...lines, 'Transfer-Encoding: gzip, chunked'], '0\r\n\r\n');
    assert.equal(response.status, 415);
    client.leave();
  });
});

test('a client of HTTP/1.0 gets no interim response, which it would not know', async () => {
  const client = await RawClient.open(running.port);
  const lines = ['Authorization: Bearer inference', JSON_TYPE, 'Expect: 100-continue', 'Content-Length: 2'];
  assert.equal((await client.ask(['POST /v1/poke HTTP/1.0', ...lines], '{}')).status, 200);
});

describe('size', () => {
  test('the largest body fits, one byte more is 413, announced or chunked', async () => {
    const fits = `{"name":"${'a'.repeat(1000 - 11)}"}`;
    assert.equal((await post('/v1/things', fits, [JSON_TYPE], 'management')).status, 200);
    const over = Buffer.from(`{"name":"${'a'.repeat(1001 - 11)}"}`);
    assert.equal((await post('/v1/things', over, [JSON_TYPE], 'management')).status, 413);
    const lines = [
      'POST /v1/things HTTP/1.1',
      'Authorization: Bearer management',
      JSON_TYPE,
      'Transfer-Encoding: chunked',
    ];
    const client = await RawClient.open(running.port);
    const response = await client.ask(lines, chunked(over, 100));
    assert.equal(response.status, 413);
    assert.match(messageOf(response), /larger than 1000 bytes/);
    client.leave();
  });

  test('an announced length over the limit is 413 before a byte of it is sent', async () => {
    const client = await RawClient.open(running.port);
    const lines = [
      'POST /v1/chat HTTP/1.1',
      'Authorization: Bearer inference',
      JSON_TYPE,
      'Content-Length: 99999999999',
    ];
    assert.equal((await client.ask(lines)).status, 413);
    client.leave();
  });

  test('a chunked body over the limit is 413 before it ends', async () => {
    const client = await RawClient.open(running.port);
    await client.send(
      `POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer management\r\n${JSON_TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    await client.send(`7d0\r\n${'a'.repeat(2000)}\r\n`);
    assert.equal((await client.response()).status, 413);
    client.leave();
  });

  test('headers over the limit are 431 with the error envelope', async () => {
    const client = await RawClient.open(running.port);
    const response = await client.ask(['GET /v1/things HTTP/1.1', `X-Long: ${'a'.repeat(40_000)}`]);
    assert.equal(response.status, 431);
    assert.equal(messageOf(response), 'the headers are too large');
    await client.closed;
  });

  test('broken chunks are 400 with the error envelope', async () => {
    const client = await RawClient.open(running.port);
    const lines = [
      'POST /v1/chat HTTP/1.1',
      'Authorization: Bearer inference',
      JSON_TYPE,
      'Transfer-Encoding: chunked',
    ];
    const response = await client.ask(lines, 'zz\r\n');
    assert.equal(response.status, 400);
    assert.equal(messageOf(response), 'this is not a valid HTTP request');
    await client.closed;
  });
});

describe('the query', () => {
  const get = async (search: string) => {
    const client = await RawClient.open(running.port);
    const response = await client.ask([`GET /v1/things?${search} HTTP/1.1`, 'Authorization: Bearer inference']);
    client.leave();
    return response;
  };

  test('texts become the numbers, booleans and lists of the schema; what SDKs add to all URLs is ignored', async () => {
    const response = await get('limit=20&deleted=false&order=desc&tag=a%20b&tag[]=c+d&beta=true&api-version=1');
    assert.deepEqual((response.json() as { query: unknown }).query, {
      limit: 20,
      deleted: false,
      order: 'desc',
      tag: ['a b', 'c d'],
    });
  });

  const cases: [search: string, message: string][] = [
    ['limit=x', 'limit must be an integer'],
    ['limit=', 'limit must be an integer'],
    ['limit=1.5', 'limit must be an integer'],
    ['limit=0x10', 'limit must be an integer'],
    ['limit=%2010', 'limit must be an integer'],
    ['limit=-1', 'limit must be at least 1'],
    ['limit=101', 'limit must be at most 100'],
    ['limit=1&limit=2', 'limit is given more than once'],
    ['order=%00', 'order must not contain the character U+0000'],
    ['deleted=yes', 'deleted must be true or false'],
    ['utm=x', 'utm is not a parameter; accepted: limit, deleted, order, tag'],
    ['__proto__=1', '__proto__ is not a parameter; accepted: limit, deleted, order, tag'],
    ['limit[]=1', 'limit[] is not a parameter; accepted: limit, deleted, order, tag'],
    ['order=up', 'order must be one of "asc", "desc"'],
  ];
  for (const [search, message] of cases) {
    test(`${search}: 400`, async () => {
      const response = await get(search);
      assert.equal(response.status, 400);
      assert.equal(messageOf(response), message);
    });
  }
});
