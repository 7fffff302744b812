/** The part of an answer that the client may see: all of it unless guardrails filter answers. */
import type { TurnEvent } from '../../formats/conversation/conversation.ts';
import type { AttemptSetup } from '../turns/attempt-setup.ts';
import type { StreamWriter, WholeReply } from '../turns/passage.ts';
import { wholeFrom, writerFromEvents } from '../turns/translate.ts';
import { isVisible, visibleSize } from '../turns/visible-output.ts';

/** A filtered answer is written from its events, since relayed bytes would include what a filter removed. */
export function shownWriter({ passage, served, stamp, screen }: AttemptSetup): StreamWriter {
  return screen === undefined ? passage.writer(stamp) : writerFromEvents(served, stamp);
}

/** @throws GatewayError 403 when a filter blocks the answer */
export function shownEvents({ screen, transcript }: AttemptSetup, events: readonly TurnEvent[]): readonly TurnEvent[] {
  const shown = screen === undefined ? events : screen.take(events);
  if (transcript !== undefined) for (const event of shown) transcript.event(event);
  return shown;
}

/** @throws GatewayError 403 when a filter blocks the answer */
export function shownWhole({ screen, served, transcript }: AttemptSetup, whole: WholeReply): WholeReply {
  const shown = screen === undefined ? whole : wholeFrom(served, screen.turn(whole.turn));
  transcript?.turn(shown.turn);
  return shown;
}

/** Whether one of the events has visible content. */
export function someVisible(events: readonly TurnEvent[]): boolean {
  for (const event of events) {
    if (
      event.type === 'partDelta' ? visibleSize(event.delta) > 0 : event.type === 'partStart' && isVisible(event.part)
    ) {
      return true;
    }
  }
  return false;
}
