import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { corpusMissing, recordings } from '../testing/recordings/corpus.ts';
import { EventReader, EventTooLargeError, type UnfinishedEvent } from './sse.ts';

interface Read {
  events: [name: string, data: string][];
  left: UnfinishedEvent | null;
}

function read(chunks: Buffer[], limitBytes?: number): Read {
  const events: Read['events'] = [];
  const reader = new EventReader((name, data) => void events.push([name, data]), limitBytes);
  for (const chunk of chunks) reader.push(chunk);
  return { events, left: reader.end() };
}

function readText(text: string): Read {
  return read([Buffer.from(text)]);
}

/** Cuts at the positions, which may repeat, so empty chunks are included. */
function cut(bytes: Buffer, positions: number[]): Buffer[] {
  const edges = [0, ...positions.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((to, index) => bytes.subarray(edges[index], to));
}

const SMALL_STREAMS = [
  'data: 北京 🌤 é\n\nevent: x\ndata: {"a":1}\n\n',
  '\uFEFFevent: start\r\ndata: a\r\ndata:  b\r\n\r\n: ping\r\n\r\ndata: 🌤\r\n\r\n',
  'data: a\r\rdata: b\rdata: c\r\r\rdata:d\r\n\n',
  'id: 7\nretry: 10\nevent\ndata\n\ndata:\ndata:\n\nfoo: bar\n\ndata: [DONE]\n\n',
  'data: unfinished\nevent: late',
];

describe('EventReader', () => {
  test('events as byte text are the bytes of the same events as text, for any bytes cut anywhere', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('data: ', 'event: ', '\n', '\r\n', '\n\n').map((text) => Buffer.from(text)),
    );
    const law = fc.property(
      fc.array(piece, { maxLength: 30 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (pieces, cuts) => {
        const bytes = Buffer.concat([Buffer.from('data: '), ...pieces]);
        const { events } = read(cut(bytes, cuts));
        const asBytes: Read['events'] = [];
        const reader = new EventReader((name, data) => void asBytes.push([name, data]), undefined, true);
        for (const chunk of cut(bytes, cuts)) reader.push(chunk);
        const encoded = (text: string) => Buffer.from(text).toString('latin1');
        assert.deepEqual(
          asBytes,
          events.map(([name, data]) => [encoded(name), encoded(data)]),
        );
      },
    );
    fc.assert(law, { numRuns: samples(500) });
  });

  test('reads names, multi-line data, one leading space, fields without a colon, comments', () => {
    const text =
      ': hello\nevent: a\ndata: one\ndata:  two\ndata:three\n\nevent\ndata\n\nid: 1\nretry: 3\ndata: x: y\n\n';
    assert.deepEqual(readText(text), {
      events: [
        ['a', 'one\n two\nthree'],
        ['', ''],
        ['', 'x: y'],
      ],
      left: null,
    });
  });

  test('events written line by line are read back, whatever the text', () => {
    const law = fc.property(
      fc.array(fc.tuple(fc.constantFrom('', 'message_start', 'x'), fc.string({ unit: 'binary' })), { maxLength: 6 }),
      (written) => {
        const events = written.map(([name, data]) => [name, data.toWellFormed().replace(/\r\n|\r/g, '\n')] as const);
        const text = events.map(([name, data]) => {
          const head = name === '' ? '' : `event: ${name}\n`;
          return `${head}data: ${data.replaceAll('\n', '\ndata: ')}\n\n: ping\n\n`;
        });
        assert.deepEqual(readText(text.join('')), { events, left: null });
      },
    );
    fc.assert(law, { numRuns: samples(300) });
  });

  test('an event without data is dropped together with its name', () => {
    assert.deepEqual(readText('event: a\n\ndata: b\n\n').events, [['', 'b']]);
  });

  test('field names are exact: longer, shorter and differently cased ones are not data', () => {
    assert.deepEqual(readText('dataset: 1\nDATA: 2\ndat\n data: 3\neventx: 4\ndata: 5\n\n').events, [['', '5']]);
  });

  test('a byte order mark is dropped at the very start only', () => {
    assert.deepEqual(readText('\uFEFFdata: a\n\n\uFEFFdata: b\n\ndata: \uFEFFc\n\n').events, [
      ['', 'a'],
      ['', '\uFEFFc'],
    ]);
  });

  test('every cut of a stream in two and in single bytes gives the same events', () => {
    for (const text of SMALL_STREAMS) {
      const bytes = Buffer.from(text);
      const whole = read([bytes]);
      for (let at = 0; at <= bytes.length; at++) {
        assert.deepEqual(read([bytes.subarray(0, at), bytes.subarray(at)]), whole, `${JSON.stringify(text)} at ${at}`);
      }
      assert.deepEqual(read(Array.from(bytes, (byte) => Buffer.from([byte]))), whole);
    }
  });

  test('a cut never produces a replacement character', () => {
    const { events } = read(Array.from(Buffer.from('data: 北京 🌤 é\n\n'), (byte) => Buffer.from([byte])));
    assert.deepEqual(events, [['', '北京 🌤 é']]);
  });

  test('an event is reported when its blank line arrives, not at the next chunk', () => {
    for (const end of ['\n\n', '\r\n\r\n', '\r\r']) {
      const events: string[] = [];
      const reader = new EventReader((_name, data) => void events.push(data));
      reader.push(Buffer.from(`data: now${end}`));
      assert.deepEqual(events, ['now'], JSON.stringify(end));
    }
  });

  test('a line feed separated from its carriage return adds no blank line', () => {
    assert.deepEqual(
      read(['data: a\r', '\ndata: b\r', '\n\r', '\ndata: c\r\n\r\n'].map((text) => Buffer.from(text))).events,
      [
        ['', 'a\nb'],
        ['', 'c'],
      ],
    );
  });

  test('a last event without its blank line is returned by end, and never passed to the handler', () => {
    assert.deepEqual(readText('data: a\n\nevent: e\ndata: b\n'), {
      events: [['', 'a']],
      left: { name: 'e', data: 'b', lineEnded: true },
    });
    assert.deepEqual(readText('data: b').left, { name: '', data: 'b', lineEnded: false });
    assert.equal(readText('data: a\n\n: comment\nevent: x').left, null);
  });

  test('a handler that stops the reader sees no further event', () => {
    const events: string[] = [];
    const reader = new EventReader((_name, data) => {
      events.push(data);
      if (data === 'b') reader.stop();
    });
    reader.push(Buffer.from('data: a\n\ndata: b\n\ndata: c\n\n'));
    reader.push(Buffer.from('data: d\n\ndata: e'));
    assert.equal(reader.end(), null);
    assert.deepEqual(events, ['a', 'b']);
  });

  test('ill-formed UTF-8 becomes U+FFFD and does not affect the framing', () => {
    const bytes = Buffer.concat([
      Buffer.from('data: a'),
      Buffer.from([0xff, 0xc3]),
      Buffer.from('\n\ndata: b'),
      Buffer.from([0xf0, 0x9f, 0x8c]),
      Buffer.from('c\n\n'),
    ]);
    const expected = [
      ['', 'a\uFFFD\uFFFD'],
      ['', 'b\uFFFDc'],
    ];
    assert.deepEqual(read([bytes]).events, expected);
    assert.deepEqual(read(Array.from(bytes, (byte) => Buffer.from([byte]))).events, expected);
  });

  test('lines that are not event stream fields are kept for error messages, up to a limit', () => {
    const reader = new EventReader(() => assert.fail('no event expected'));
    reader.push(Buffer.from('{\n  "error": {"code": 503}\n}\n: comment\nid: 1\nretry: 1\n'));
    assert.equal(reader.stray, '{\n  "error": {"code": 503}\n}');
    for (let index = 0; index < 100; index++) reader.push(Buffer.from(`${'<'.repeat(10_000)}\n`));
    assert.ok(reader.stray.length <= 64 * 1024 + 10);
  });

  test('an event above the limit is an error, in one line, over many lines, and before its line ends', () => {
    const big = 'x'.repeat(600);
    const tooLarge = (chunks: string[]) => {
      const events: string[] = [];
      const reader = new EventReader((_name, data) => void events.push(data), 1000);
      assert.throws(() => {
        for (const chunk of chunks) reader.push(Buffer.from(chunk));
      }, EventTooLargeError);
      reader.push(Buffer.from('data: after\n\n'));
      assert.deepEqual(events, []);
    };
    tooLarge([`data: ${big}${big}\n\n`]);
    tooLarge([`data: ${big}\ndata: ${big}\n\n`]);
    tooLarge([`data: ${big}`, big]);
    tooLarge([`data: ${big}\n`, `data: ${big}`]);
    tooLarge([`: ${big}`, big]);
    tooLarge(Array.from({ length: 1001 }, () => 'data:\n'));
    assert.equal(read([Buffer.from(`data: ${big}\n\ndata: ${big}\n\n`)], 1000).events.length, 2);
  });

  test('a long line takes linear time: 6 MB in chunks of 16 KiB, 1 MB in chunks of one byte', () => {
    for (const [step, repeats] of [
      [16_384, 500_000],
      [1, 80_000],
    ] as const) {
      const data = 'é0123456789'.repeat(repeats);
      const bytes = Buffer.from(`data: ${data}\n\n`);
      const events: string[] = [];
      const reader = new EventReader((_name, text) => void events.push(text));
      const startedAt = process.cpuUsage();
      for (let at = 0; at < bytes.length; at += step) reader.push(bytes.subarray(at, at + step));
      const { user, system } = process.cpuUsage(startedAt);
      assert.equal(events.length, 1);
      assert.ok(events[0] === data, 'the text came through changed');
      // Quadratic work would take minutes, so a generous bound is enough on a busy machine.
      assert.ok(user + system < 10e6, `${(user + system) / 1e6} s for chunks of ${step}`);
    }
  });

  test('many short lines in one chunk take linear time, whichever line end is absent', () => {
    for (const end of ['\n', '\r']) {
      const bytes = Buffer.from(`data: x${end}${end}`.repeat(200_000));
      const startedAt = process.cpuUsage();
      assert.equal(read([bytes]).events.length, 200_000);
      assert.ok(process.cpuUsage(startedAt).user < 10e6);
    }
  });

  test('the events are the same whatever the line ends and the cuts', () => {
    const text = fc
      .string({ unit: 'binary', maxLength: 40 })
      .map((value) => value.replace(/[\r\n]/g, ' ').toWellFormed());
    const event = fc.record({
      name: text,
      lines: fc.array(text, { minLength: 1, maxLength: 4 }),
      noise: fc.constantFrom('', ': comment', ':', 'id: 5', 'retry', 'other: data: x'),
    });
    const law = fc.property(
      fc.array(event, { maxLength: 8 }),
      fc.infiniteStream(fc.constantFrom('\n', '\r\n', '\r')),
      fc.array(fc.nat(), { maxLength: 30 }),
      fc.boolean(),
      (events, lineEnds, cuts, mark) => {
        const ends = lineEnds[Symbol.iterator]();
        let lastEnd = '';
        const line = (value: string) => {
          const end: string = ends.next().value;
          // CR before an empty line that ends in LF would be one line end, not two.
          lastEnd = value === '' && lastEnd === '\r' && end === '\n' ? '\r' : end;
          return value + lastEnd;
        };
        const stream = events.flatMap(({ name, lines, noise }) => {
          const head = [noise, name === '' ? '' : `event: ${name}`].filter((value) => value !== '');
          return [...head, ...lines.map((value) => `data: ${value}`), ''].map(line);
        });
        const bytes = Buffer.from((mark ? '\uFEFF' : '') + stream.join(''));
        const expected = events.map(({ name, lines }) => [name, lines.join('\n')]);
        assert.deepEqual(read(cut(bytes, cuts)).events, expected);
      },
    );
    fc.assert(law, { numRuns: samples(300) });
  });
});

describe('recorded streams', { skip: corpusMissing }, () => {
  const streams = recordings().filter(({ events }) => events.length > 0);

  test('give the same events as another reader, whole and one byte at a time', () => {
    assert.ok(streams.length > 80);
    for (const { id, bytes, events } of streams) {
      const whole = read([bytes]);
      const found = whole.left === null ? whole.events : [...whole.events, [whole.left.name, whole.left.data]];
      assert.deepEqual(
        found,
        events.map(({ name, data }) => [name, data]),
        id,
      );
      const single: Buffer[] = [];
      for (let at = 0; at < bytes.length; at++) single.push(bytes.subarray(at, at + 1));
      assert.deepEqual(read(single), whole, id);
    }
  });

  test('give the same events at every cut (short streams)', () => {
    const short = streams.filter(({ bytes }) => bytes.length <= 2048);
    assert.ok(short.length > 5);
    for (const { id, bytes } of short) {
      const whole = read([bytes]);
      for (let at = 1; at < bytes.length; at++) {
        assert.deepEqual(read([bytes.subarray(0, at), bytes.subarray(at)]), whole, `${id} at ${at}`);
      }
    }
  });
});
