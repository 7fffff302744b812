import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { TestClock } from '../testing/clock/clock.ts';
import { createLog, type Fields, type LogOptions, redact, scrub } from './log.ts';

/** What a log writes, line by line. */
function logged(
  work: (log: ReturnType<typeof createLog>) => void,
  options: Partial<LogOptions> & { isTTY?: boolean } = {},
) {
  const lines: string[] = [];
  const stream = { write: (line: string) => lines.push(line), isTTY: options.isTTY ?? false };
  work(createLog({ stream, clock: new TestClock(Date.UTC(2026, 1, 3, 4, 5, 6, 7)), ...options }));
  return lines;
}

describe('a line', () => {
  test('off a terminal is one JSON object with time, level, event and fields', () => {
    const [line = ''] = logged((log) =>
      log.info('listening', { port: 8484, host: '::1', tls: false, none: null, gone: undefined }),
    );
    assert.ok(line.endsWith('}\n'));
    assert.deepEqual(JSON.parse(line), {
      time: '2026-02-03T04:05:06.007Z',
      level: 'info',
      event: 'listening',
      port: 8484,
      host: '::1',
      tls: false,
      none: null,
    });
  });

  test('on a terminal is readable', () => {
    const [line] = logged((log) => log.warn('slow query', { ms: 12, sql: 'select 1', ids: [1, 2] }), { isTTY: true });
    assert.equal(line, '04:05:06.007 warn  slow query ms=12 sql="select 1" ids=[1,2]\n');
  });

  test('below the level is not written', () => {
    const write = (log: ReturnType<typeof createLog>) => {
      log.debug('a');
      log.info('b');
      log.warn('c');
      log.error('d');
    };
    assert.equal(logged(write).length, 3);
    assert.equal(logged(write, { level: 'error' }).length, 1);
    assert.equal(logged(write, { level: 'debug' }).length, 4);
  });

  test('carries the fields of its log, its own first', () => {
    const [line = ''] = logged((log) => log.with({ worker: 1, a: 'x' }).with({ a: 'y' }).info('event', { b: 2 }));
    const { worker, a, b } = JSON.parse(line);
    assert.deepEqual({ worker, a, b }, { worker: 1, a: 'y', b: 2 });
  });

  test('shows an error with its stack and its causes, a circle of them too', () => {
    const first = new Error('outer', { cause: new Error('inner') });
    const circle = new Error('round');
    circle.cause = circle;
    for (const isTTY of [false, true]) {
      const [one = '', two = ''] = logged(
        (log) => {
          log.error('failed', { error: first });
          log.error('failed', { error: circle });
        },
        { isTTY },
      );
      assert.match(one, /outer/);
      assert.match(one, /caused by: Error: inner/);
      assert.match(two, /round/);
    }
  });

  test('cannot be forged or drive a terminal from within a value', () => {
    const evil = 'x\n{"level":"error"}\r\u001b[2J\u009b1m\u2028';
    for (const isTTY of [false, true]) {
      const lines = logged((log) => log.info(evil, { [evil]: evil, error: { message: evil } }), { isTTY });
      assert.equal(lines.length, 1);
      const line = lines[0]!;
      assert.equal(line.indexOf('\n'), line.length - 1);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
      assert.doesNotMatch(line.slice(0, -1), /[\x00-\x1f]/);
      if (isTTY) assert.doesNotMatch(line.slice(0, -1), /[\x7f-\x9f\u2028]/);
    }
  });

  test('is bounded, however long its fields and however many', () => {
    const many: Fields = {};
    for (let index = 0; index < 10_000; index += 1) many[`field${index}`] = 'a'.repeat(100_000);
    for (const isTTY of [false, true]) {
      const [line = ''] = logged((log) => log.info('a'.repeat(1_000_000), many), { isTTY });
      assert.ok(line.length < 400_000);
    }
  });
});

describe('logging never throws', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const cases: Record<string, unknown> = {
    'a circle': circle,
    'a bigint': { value: [1n] },
    'a throwing toJSON': {
      toJSON: () => {
        throw new Error('no');
      },
    },
    'a throwing getter': {
      get value(): never {
        throw new Error('no');
      },
    },
    'a symbol': Symbol('x'),
    'a function': () => {},
    'an object without prototype': Object.create(null),
    'half a surrogate pair': '\ud800',
  };
  for (const [name, value] of Object.entries(cases)) {
    test(name, () => {
      for (const isTTY of [false, true]) {
        assert.equal(logged((log) => log.info('event', { value }), { isTTY }).length, 1);
      }
    });
  }

  test('a stream that throws', () => {
    const log = createLog({
      stream: {
        write: () => {
          throw new Error('EPIPE');
        },
      },
    });
    log.error('event');
  });

  test('a stream that is stuck: lines are dropped, and counted when it moves again', () => {
    const lines: string[] = [];
    const stream = { write: (line: string) => lines.push(line), writableLength: 100_000_000 };
    const log = createLog({ stream });
    log.info('one');
    log.info('two');
    assert.equal(lines.length, 0);
    stream.writableLength = 0;
    log.info('three');
    assert.equal(JSON.parse(lines[0]!).dropped_lines, 2);
  });
});

describe('a registered secret', () => {
  const secret = 'sk-live/Ab+9="x"\\é§';
  redact(secret);

  test('appears in no line, in every position and encoding', () => {
    const spellings = [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
      Buffer.from(`user:${secret}`).toString('base64'),
      Buffer.from(`me:${secret}@host`).toString('base64url'),
      Buffer.from(`x${secret}`).toString('base64'),
    ];
    const traces = [
      'sk-live',
      'Ab%2B9',
      ...[0, 1, 2].map((pad) =>
        Buffer.from('\0'.repeat(pad) + secret)
          .toString('base64')
          .slice(4, 16),
      ),
    ];
    for (const spelling of spellings) {
      for (const isTTY of [false, true]) {
        const text = logged(
          (log) => {
            log.info(`at ${spelling}`, { [spelling]: 1, value: spelling, inside: { deep: [spelling] } });
            log.error('failed', { error: new Error(`bad ${spelling}`, { cause: new Error(spelling) }) });
          },
          { isTTY },
        ).join('');
        for (const trace of traces) assert.ok(!text.includes(trace), `${trace} in ${text}`);
      }
    }
  });

  test('is not shown in part by a cut', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4000, max: 4200 }), (before) => {
        const [line = ''] = logged((log) => log.info('event', { value: 'a'.repeat(before) + secret }));
        assert.doesNotMatch(line, /sk-/);
      }),
    );
  });

  test('is scrubbed from texts, whose other words stay', () => {
    assert.equal(scrub(`key ${secret} refused`), 'key [redacted] refused');
    assert.equal(scrub('nothing to hide'), 'nothing to hide');
  });

  test('that is empty or short harms no other text', () => {
    redact('');
    redact('x');
    redact('§§§');
    redact('§§§§');
    assert.equal(scrub('expected§§§'), 'expected§§§');
    assert.equal(scrub('a§§§§b'), 'a[redacted]b');
  });
});

describe('lines that come by the thousand', () => {
  test('are written together a tenth of a second later, as JSON like all others', () => {
    const clock = new TestClock(Date.UTC(2026, 1, 3, 4, 5, 6, 7));
    const writes = logged(
      (log) => {
        const worker = log.with({ worker: 1 });
        for (let count = 0; count < 3; count += 1) {
          worker.often('info', 'request', { path: '/a"b', count, ok: true, none: undefined });
        }
        clock.advance(100);
        worker.often('info', 'request', { count: 3 });
        clock.advance(100);
      },
      { clock },
    );
    assert.deepEqual(
      writes.map((text) => text.split('\n').length - 1),
      [3, 1],
    );
    assert.deepEqual(JSON.parse(writes[0]!.split('\n')[2]!), {
      ...{ time: '2026-02-03T04:05:06.007Z', level: 'info', event: 'request' },
      ...{ worker: 1, path: '/a"b', count: 2, ok: true },
    });
  });

  test('keep their order, respect the level, and are written at a flush', () => {
    const lines = logged((log) => {
      log.often('info', 'first', {});
      log.often('debug', 'never', {});
      log.warn('second');
      log.often('info', 'third', {});
      log.flush();
    });
    const events = lines.join('').trim().split('\n');
    assert.deepEqual(
      events.map((line) => JSON.parse(line).event),
      ['first', 'second', 'third'],
    );
  });

  test('are written before they take much memory', () => {
    const writes = logged((log) => {
      for (let count = 0; count < 10_000; count += 1) log.often('info', 'request', { count });
    });
    assert.ok(writes.length > 5 && writes.every((text) => text.length < 70_000));
  });

  test('show no secret, not even in a text that was logged before it became one', () => {
    const secret = 'often-told-secret-1234567890';
    const lines = logged((log) => {
      log.often('info', 'request', { path: `/${secret}` });
      redact(secret);
      log.often('info', 'request', { path: `/${secret}` });
      log.often('info', 'request', { path: `/"${secret}\n` });
      log.flush();
    });
    const paths = lines
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).path);
    assert.deepEqual(paths, ['/[redacted]', '/[redacted]', '/"[redacted]\n']);
  });

  test('are readable at once on a terminal', () => {
    const lines = logged((log) => log.often('info', 'request', { status: 200, path: '/a b' }), { isTTY: true });
    assert.deepEqual(lines, ['04:05:06.007 info  request status=200 path="/a b"\n']);
  });

  test('are dropped and counted while the output is blocked', () => {
    const lines: string[] = [];
    const stream = { write: (line: string) => lines.push(line), writableLength: 5_000_000 };
    const log = createLog({ stream });
    for (let count = 0; count < 5; count += 1) log.often('info', 'request', { count });
    assert.deepEqual(lines, []);
    stream.writableLength = 0;
    log.often('info', 'request', { count: 5 });
    assert.equal(JSON.parse(lines[0]!).dropped_lines, 5);
  });
});
