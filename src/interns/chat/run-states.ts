/** The states of a run, as one table. A run is one turn of the agent, from the prompt to its end. No I/O. */

/** `cancelling`: the agent was asked to end the turn, and has not confirmed it. */
export const RUN_STATES = ['streaming', 'paused', 'cancelling', 'ended'] as const;
export type RunState = (typeof RUN_STATES)[number];

/**
 * From the agent: it asks, and the turn is over in one of four ways. From the caller: an accepted answer, and a connection that
 * closes while the response is still streaming. From the gateway: a deadline, more output than is kept for a reader, an intern
 * that is stopped, and an agent that does not confirm a cancellation.
 */
export const RUN_EVENTS = [
  'asked',
  'completed',
  'cancelled',
  'failed',
  'gone',
  'answered',
  'left',
  'late',
  'overflowed',
  'stopped',
  'unconfirmed',
] as const;
export type RunEvent = (typeof RUN_EVENTS)[number];

/** `same`: nothing changes. `refused`: the caller may not do that now. */
type RunStep = RunState | 'same' | 'refused';

const OVER = { completed: 'ended', cancelled: 'ended', failed: 'ended', gone: 'ended' } as const;

export const RUN_TABLE: Readonly<Record<RunState, Readonly<Record<RunEvent, RunStep>>>> = {
  streaming: {
    ...{ ...OVER, asked: 'paused', answered: 'refused' },
    ...{ left: 'cancelling', late: 'cancelling', overflowed: 'cancelling', stopped: 'cancelling', unconfirmed: 'same' },
  },
  paused: {
    // Further questions wait for their turn.
    ...{ ...OVER, asked: 'same', answered: 'streaming' },
    // Its caller has read the end of the response, and leaves.
    ...{ left: 'same', late: 'cancelling', overflowed: 'cancelling', stopped: 'cancelling', unconfirmed: 'same' },
  },
  cancelling: {
    ...{ ...OVER, asked: 'same', answered: 'refused' },
    ...{ left: 'same', late: 'same', overflowed: 'same', stopped: 'same', unconfirmed: 'ended' },
  },
  ended: {
    ...{ completed: 'same', cancelled: 'same', failed: 'same', gone: 'same', asked: 'same', answered: 'refused' },
    ...{ left: 'same', late: 'same', overflowed: 'same', stopped: 'same', unconfirmed: 'same' },
  },
};
