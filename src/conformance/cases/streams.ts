/** Streams: that they are passed on at once, that a broken one is reported, and that a client that leaves ends the call. */
import { waitAtMost } from '../../base/clock.ts';
import { formatOf, type Place, type Session, STREAM_TYPE } from '../session.ts';
import type { Script } from '../upstreams.ts';
import { type Case, heardOf, Lost, simple } from './case.ts';
import { ordinaryFrames } from './conversation.ts';

/** How long to wait for things that a gateway does at once, if it does them. */
const PATIENCE_MS = 5_000;
/** Of the ordinary answer. */
const [FIRST_WORD, LAST_WORD] = ['Hello', 'upstream.'];

type Cut = (place: Place) => Script;

/** The frames until the given place, and how the stream ends there. */
function cutAt(until: (place: Place) => readonly string[], end: 'cut' | 'complete'): Cut {
  return (place) => ({ headers: STREAM_TYPE, steps: until(place), end });
}

function texts(place: Place, kinds: readonly string[]): string[] {
  return ordinaryFrames(place)
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ text }) => text);
}

function untilFirstWord(place: Place): string[] {
  const all = texts(place, ['open', 'delta']);
  return all.slice(0, all.findIndex((text) => text.includes(FIRST_WORD)) + 1);
}

/** With half of the next event. */
function withinEvent(place: Place): string[] {
  const first = untilFirstWord(place);
  const next = texts(place, ['open', 'delta'])[first.length] ?? '';
  return [...first, next.slice(0, next.length / 2)];
}

function cutCase(feature: string, script: Cut): Case {
  return {
    ...{ feature, scope: 'pair', modes: ['stream'] },
    async run(session, place) {
      expectTold(await session.ask(place, { asked: simple, script: () => script(place) }));
    },
  };
}

/** An error status, an error event, or at least a connection that does not end as it should. */
function expectTold({ reply, heard, broken }: Awaited<ReturnType<Session['ask']>>): void {
  if (reply.status >= 400 || heard?.error !== undefined || reply.end === 'broken') return;
  if (broken !== undefined) throw new Lost(`the stream breaks its format: ${broken}`);
  if (reply.end === 'silent') throw new Lost('the stream stays open');
  throw new Lost(
    heard?.stop === undefined
      ? 'it ends without an end and without an error'
      : `it ends as if complete: ${heard.stopText}`,
  );
}

const LEAVES_EARLY: Case = {
  ...{ feature: 'a disconnect before the answer ends the call', scope: 'pair', modes: ['whole', 'stream'] },
  async run(session, place) {
    const closed = Promise.withResolvers<Promise<void>>();
    await session.ask(place, {
      asked: simple,
      script: () => ({ steps: [], silent: true }),
      onArrival(received, leave) {
        closed.resolve(received.closedEarly);
        leave();
      },
    });
    await expectClosed(session, closed.promise);
  },
};

const LEAVES_STREAM: Case = {
  ...{ feature: 'a disconnect during a stream ends the call', scope: 'pair', modes: ['stream'] },
  async run(session, place) {
    const closed = Promise.withResolvers<Promise<void>>();
    await session.ask(place, {
      asked: simple,
      script: () => ({ headers: STREAM_TYPE, steps: untilFirstWord(place), end: 'stall' }),
      onArrival: ({ closedEarly }) => closed.resolve(closedEarly),
      onText: (text, leave) => {
        if (text.includes(FIRST_WORD)) leave();
      },
    });
    await expectClosed(session, closed.promise);
  },
};

async function expectClosed(session: Session, closed: Promise<Promise<void>>): Promise<void> {
  let isClosed = false;
  const ends = closed.then(async (early) => {
    await early;
    isClosed = true;
  });
  await waitAtMost(session.clock, PATIENCE_MS, ends);
  if (!isClosed) throw new Lost(`the call is still open ${PATIENCE_MS / 1000} s later`);
}

/** The upstream sends the rest once the client has the first word. */
const PASSED_ON: Case = {
  ...{ feature: 'passed on at once', scope: 'pair', modes: ['stream'] },
  async run(session, place) {
    const shown = Promise.withResolvers<void>();
    let isShown = false;
    const first = untilFirstWord(place);
    const rest = ordinaryFrames(place).slice(first.length);
    const wait = waitAtMost(session.clock, PATIENCE_MS, shown.promise);
    const exchange = await session.ask(place, {
      asked: simple,
      script: () => ({ headers: STREAM_TYPE, steps: [...first, wait, ...rest.map(({ text }) => text)] }),
      onText(text) {
        if (isShown || !shows(text)) return;
        isShown = true;
        shown.resolve();
      },
    });
    heardOf(exchange);
    if (!isShown) throw new Lost('the first text comes with the last');
  },
};

/** The client has the first word and not yet the last; each is an event of its own. */
function shows(text: string): boolean {
  return text.includes(FIRST_WORD) && !text.includes(LAST_WORD);
}

const BROKEN_WHOLE: Case = {
  ...{ feature: 'an answer cut within its body is an error', scope: 'pair', modes: ['whole'] },
  async run(session, place) {
    const { upstream } = place;
    const script = (): Script => {
      const text = JSON.stringify(formatOf(upstream).whole({ ...NOTHING, text: FIRST_WORD }));
      const headers = { 'content-type': 'application/json', 'content-length': String(text.length) };
      return { headers, steps: [text.slice(0, -20)], end: 'cut' };
    };
    expectTold(await session.ask(place, { asked: simple, script }));
  },
};

const NOTHING = {
  ...{ text: '', reasoning: '', signature: '', refusal: '', calls: [], stop: 'stop' as const },
  usage: { input: 1, cached: 0, output: 1, reasoning: 0 },
};

export const STREAM_CASES: readonly Case[] = [
  PASSED_ON,
  cutCase(
    'cut before the first text: reported',
    cutAt(() => [], 'cut'),
  ),
  cutCase('cut after the first text: reported', cutAt(untilFirstWord, 'cut')),
  cutCase('cut within an event: reported', cutAt(withinEvent, 'cut')),
  cutCase(
    'cut after the last text: reported',
    cutAt((place) => texts(place, ['open', 'delta']), 'cut'),
  ),
  cutCase('closed cleanly after the first text: reported', cutAt(untilFirstWord, 'complete')),
  cutCase(
    'closed cleanly after the last text: reported',
    cutAt((place) => texts(place, ['open', 'delta']), 'complete'),
  ),
  cutCase('an error event of the upstream: reported', (place) => ({
    headers: STREAM_TYPE,
    steps: [...untilFirstWord(place), formatOf(place.upstream).failure('the model is gone').text],
  })),
  BROKEN_WHOLE,
  LEAVES_EARLY,
  LEAVES_STREAM,
];
