import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { AnswerParser, type AnswerReader, type HeaderForm, PIECE_BYTES } from './answer-parser.ts';

/** Records its calls, joining pieces that are cut anywhere. */
class Heard<Headers> implements AnswerReader<Headers> {
  status = 0;
  reason = '';
  headers: Headers | undefined;
  trailers: Headers | undefined;
  body = '';
  end: boolean | undefined;
  malformed = false;
  unfinished = false;

  answerHead(status: number, headers: Headers, reason: string): void {
    assert.equal(this.status, 0, 'a head came twice');
    this.status = status;
    this.headers = headers;
    this.reason = reason;
  }

  answerData(chunk: Buffer): void {
    assert.ok(chunk.length > 0);
    assert.ok(this.status !== 0 && this.end === undefined, 'data out of order');
    this.body += chunk.toString('latin1');
  }

  answerEnd(reusable: boolean, trailers: Headers | undefined): void {
    assert.equal(this.end, undefined, 'an end came twice');
    this.end = reusable;
    this.trailers = trailers;
  }

  answerMalformed(): void {
    this.malformed = true;
  }
}

/** Two headers, the first value of each. */
const SOME: HeaderForm<Record<string, string>> = {
  isWhole: false,
  create: () => ({}),
  keptAs: (name) => (/^(?:content-type|x-note)$/i.test(name) ? name.toLowerCase() : undefined),
  add: (headers, name, value) => {
    headers[name] ??= value.trim();
  },
};

const ALL: HeaderForm<string[]> = {
  isWhole: true,
  create: () => [],
  keptAs: (name) => name,
  add: (headers, name, value) => void headers.push(name, value),
};

interface Reading {
  pieces: readonly (string | Buffer)[];
  /** The upstream closes the connection after them. */
  closes?: boolean;
  asked?: boolean;
  /** The request was HEAD. */
  bodiless?: boolean;
}

const read = (reading: Reading) => readAs(SOME, reading);

function readAs<Headers>(form: HeaderForm<Headers>, { pieces, closes = false, asked = true, bodiless }: Reading) {
  const heard = new Heard<Headers>();
  const parser = new AnswerParser(heard, form);
  if (asked) parser.expect(bodiless);
  for (const piece of pieces) {
    const bytes = Buffer.from(piece as string, 'latin1');
    parser.read(bytes);
    // As the next read does, which reuses the same memory.
    bytes.fill('#');
    if (heard.malformed) break;
  }
  if (closes && !heard.malformed) {
    parser.finish();
    heard.unfinished = asked && heard.end === undefined;
  }
  parser.free();
  return heard;
}

const OK = 'HTTP/1.1 200 OK\r\n';

describe('an answer', () => {
  const bodies = fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Buffer.from(text).toString('latin1'));
  const answers = fc.record({
    early: fc.constantFrom('', 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'),
    status: fc.constantFrom(200, 201, 302, 404, 429, 503),
    keepAlive: fc.boolean(),
    note: fc.constantFrom('', 'a', 'a b', '\xe9', 'x'.repeat(300)),
    framing: fc.constantFrom('length', 'chunked', 'close'),
    chunks: fc.array(bodies, { maxLength: 5 }),
    trailer: fc.boolean(),
  });

  function written(answer: typeof answers extends fc.Arbitrary<infer T> ? T : never): string {
    const { early, status, keepAlive, note, framing, chunks, trailer } = answer;
    const body = chunks.join('');
    const head = `${early}HTTP/1.1 ${status} Whatever\r\nContent-TYPE: text/x\r\nX-Note:  ${note} \r\nx-note: second\r\nx-other: z\r\n${keepAlive ? '' : 'Connection: close\r\n'}`;
    if (framing === 'close') return `${head}\r\n${body}`;
    if (framing === 'length') return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    const sent = chunks.filter((chunk) => chunk !== '');
    const framed = sent.map((chunk) => `${chunk.length.toString(16)};ext=1\r\n${chunk}\r\n`).join('');
    return `${head}Transfer-Encoding: chunked\r\n\r\n${framed}0\r\n${trailer ? 'content-type: late\r\nx-note: late\r\n' : ''}\r\n`;
  }

  test('is read the same however it is cut', () => {
    fc.assert(
      fc.property(answers, fc.array(fc.nat(2000), { maxLength: 12 }), fc.boolean(), (answer, cuts, single) => {
        const text = written(answer);
        const at = single
          ? Array.from(text, (_, index) => index)
          : cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b);
        const pieces = [...at, text.length].map((end, index) => text.slice(index === 0 ? 0 : at[index - 1], end));
        const closes = answer.framing === 'close';
        const heard = read({ pieces: pieces.filter((piece) => piece !== ''), closes });
        assert.deepEqual(
          [heard.status, heard.headers, heard.body, heard.end, heard.malformed, heard.unfinished],
          [
            answer.status,
            { 'content-type': 'text/x', 'x-note': answer.note },
            answer.chunks.join(''),
            answer.keepAlive && !closes,
            false,
            false,
          ],
        );
      }),
      { numRuns: samples(500) },
    );
  });

  test('is read with all its headers and trailers, if they are wanted', () => {
    fc.assert(
      fc.property(answers, fc.nat(2000), (answer, cut) => {
        const text = written(answer);
        const at = cut % text.length;
        const pieces = [text.slice(0, at), text.slice(at)].filter((piece) => piece !== '');
        const heard = readAs(ALL, { pieces, closes: answer.framing === 'close' });
        const framing = { length: 'Content-Length', chunked: 'Transfer-Encoding', close: undefined }[answer.framing];
        const names = heard.headers?.filter((_, index) => index % 2 === 0);
        const connection = answer.keepAlive ? [] : ['Connection'];
        assert.deepEqual(
          names,
          ['Content-TYPE', 'X-Note', 'x-note', 'x-other', ...connection, framing].filter((name) => name !== undefined),
        );
        assert.equal(heard.headers?.[3]?.trimEnd(), answer.note);
        assert.equal(heard.reason, 'Whatever');
        const hasTrailers = answer.framing === 'chunked' && answer.trailer;
        assert.deepEqual(heard.trailers, hasTrailers ? ['content-type', 'late', 'x-note', 'late'] : undefined);
      }),
      { numRuns: samples(200) },
    );
  });

  test('to HEAD ends with its head, and the next one is read', () => {
    const heard = new Heard<Record<string, string>>();
    const parser = new AnswerParser(heard, SOME);
    parser.expect(true);
    parser.read(Buffer.from(`HTTP/1.1 103 Early Hints\r\n\r\n${OK}content-length: 5\r\n\r\n`));
    assert.deepEqual([heard.status, heard.end], [200, true]);
    Object.assign(heard, { status: 0, end: undefined });
    parser.expect();
    parser.read(Buffer.from(`${OK}content-length: 2\r\n\r\nok`));
    assert.deepEqual([heard.body, heard.end], ['ok', true]);
    parser.free();
    assert.equal(read({ pieces: [`${OK}transfer-encoding: chunked\r\n\r\n`], bodiless: true }).end, true);
  });

  test('that ends early is unfinished, wherever it is cut', () => {
    fc.assert(
      fc.property(answers, fc.nat(2000), (answer, cut) => {
        const text = written(answer);
        const at = cut % text.length;
        const bodyAt = text.indexOf('\r\n\r\n', answer.early.length) + 4;
        fc.pre(answer.framing !== 'close' || at < bodyAt);
        const heard = read({ pieces: at === 0 ? [] : [text.slice(0, at)], closes: true });
        assert.deepEqual([heard.end, heard.malformed, heard.unfinished], [undefined, false, true]);
        assert.ok(answer.chunks.join('').startsWith(heard.body));
      }),
      { numRuns: samples(500) },
    );
  });

  test('longer than a piece is delivered completely, in pieces', () => {
    const body = Buffer.alloc(3 * PIECE_BYTES + 7, 'abc').toString('latin1');
    const heard = read({ pieces: [`${OK}content-length: ${body.length}\r\n\r\n${body}`] });
    assert.ok(heard.body === body && heard.end === true);
  });

  test('without a body has none: 204, 304, length 0', () => {
    for (const head of ['HTTP/1.1 204 No Content\r\n', 'HTTP/1.1 304 Not Modified\r\n', `${OK}content-length: 0\r\n`]) {
      const heard = read({ pieces: [`${head}\r\n`] });
      assert.deepEqual([heard.body, heard.end], ['', true]);
    }
  });

  test('of HTTP/1.0 leaves a reusable connection only with keep-alive', () => {
    const heads = [
      'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n',
      `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n`,
    ];
    assert.deepEqual(
      heads.map((head) => read({ pieces: [`${head}\r\nx`] }).end),
      [false, true],
    );
  });
});

describe('what is not an answer', () => {
  const whole = `${OK}x-note: a\r\ncontent-length: 2\r\n\r\nok`;

  test('after the end of one makes the connection unusable', () => {
    for (const more of ['x', OK, whole, '\0']) {
      const heard = read({ pieces: [whole + more] });
      assert.deepEqual([heard.body, heard.end, heard.malformed], ['ok', false, false], JSON.stringify(more));
      assert.deepEqual(heard.headers, { 'x-note': 'a' });
    }
  });

  test('without a request is malformed, except for an empty line', () => {
    assert.equal(read({ pieces: [whole], asked: false }).malformed, true);
    assert.equal(read({ pieces: ['H'], asked: false }).malformed, true);
    const heard = read({ pieces: ['\r\n'], asked: false, closes: true });
    assert.deepEqual([heard.malformed, heard.unfinished], [false, false]);
  });

  test('in its second half is malformed, after the data before it', () => {
    const answers = [
      'SSH-2.0-OpenSSH_9.2\r\n',
      'HTTP/1.1 000 Nothing\r\ncontent-length: 2\r\n\r\nok',
      'HTTP/1.1 099 Nothing\r\n\r\n',
      'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
      `${OK}x-long: ${'x'.repeat(100_000)}\r\n\r\n`,
      `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nxy`,
      `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${OK}content-length: -1\r\n\r\n`,
      `${OK}content-length: 1 2\r\n\r\nx`,
      `${OK}x: a\0b\r\n\r\n`,
      `${OK}x: a\r\n folded\r\n\r\n`,
      `${OK}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    ];
    for (const text of answers) {
      const heard = read({ pieces: [text], closes: true });
      assert.deepEqual([heard.end, heard.malformed], [undefined, true], JSON.stringify(text.slice(0, 80)));
    }
    const heard = read({ pieces: [`${OK}transfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n`] });
    assert.deepEqual([heard.status, heard.body, heard.malformed], [200, 'ok', true]);
  });

  test('trailers beyond the limit of a head end the answer', () => {
    const heard = read({
      pieces: [
        `${OK}transfer-encoding: chunked\r\n\r\n0\r\n`,
        ...Array(100).fill(`t: ${'x'.repeat(1000)}\r\n`),
        '\r\n',
      ],
    });
    assert.deepEqual([heard.end, heard.malformed], [undefined, true]);
  });

  test('an informational response has no body', () => {
    for (const framed of ['content-length: 3\r\n\r\nabc', 'transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n']) {
      const heard = read({ pieces: [`HTTP/1.1 150 Early\r\n${framed}${OK}content-length: 2\r\n\r\nok`] });
      assert.deepEqual([heard.status, heard.body, heard.malformed], [0, '', true]);
    }
  });

  test('a few bytes of a body in a large frame do not keep the memory of the frame', () => {
    const kept = new Set<ArrayBufferLike>();
    const heard = new Heard<Record<string, string>>();
    heard.answerData = (chunk) => {
      kept.add(chunk.buffer);
    };
    const parser = new AnswerParser(heard, SOME);
    parser.expect();
    parser.read(Buffer.from(`${OK}transfer-encoding: chunked\r\n\r\n1;`));
    const piece = Buffer.from(`x\r\na\r\n1;`.padEnd(PIECE_BYTES, 'x'));
    for (let count = 0; count < 20; count += 1) parser.read(piece);
    parser.free();
    assert.ok(kept.size > 0 && kept.size < 4, `${kept.size} buffers`);
  });
});

test('many concurrent connections have their own parsers and free them', () => {
  const open = Array.from({ length: 20_000 }, () => {
    const heard = new Heard<Record<string, string>>();
    const parser = new AnswerParser(heard, SOME);
    parser.expect();
    parser.read(Buffer.from(`${OK}content-le`));
    return { heard, parser };
  });
  for (const { heard, parser } of open) {
    parser.read(Buffer.from('ngth: 3\r\n\r\nabc'));
    assert.deepEqual([heard.body, heard.end], ['abc', true]);
    parser.free();
    parser.free();
    parser.read(Buffer.from(OK));
    assert.equal(heard.malformed, false);
  }
});
