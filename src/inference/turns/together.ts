/** Combines two kinds of tools of one request. */
import type { GatewayTools, WantedTools } from './gateway-tools.ts';

/** @param first gets the client's conversation; the second gets what the first has made of it */
export function together(first: WantedTools, second: WantedTools): WantedTools {
  return {
    get definitionBytes() {
      return first.definitionBytes + second.definitionBytes;
    },
    nativeWork: first.nativeWork ?? second.nativeWork,
    discover: eitherOf(first.discover, second.discover),
    get continueCalls() {
      return first.continueCalls ?? second.continueCalls;
    },
    lasting: first.lasting || second.lasting,
    load(asking) {
      const loading = [first.load?.(asking), second.load?.(asking)].filter((each) => each !== undefined);
      return loading.length === 0 ? undefined : Promise.all(loading).then(() => undefined);
    },
    begin(conversation, format) {
      const one = first.begin(conversation, format);
      return joined(one, second.begin(one.conversation, format));
    },
  };
}

function eitherOf(first: WantedTools['discover'], second: WantedTools['discover']): WantedTools['discover'] {
  if (first === undefined || second === undefined) return first ?? second;
  return (running) => Promise.all([first(running), second(running)]).then(() => undefined);
}

function joined(one: GatewayTools, other: GatewayTools): GatewayTools {
  const of = (name: string) => (one.claims(name) ? one : other);
  return {
    conversation: other.conversation,
    prelude: [...(one.prelude ?? []), ...(other.prelude ?? [])],
    ending: one.ending ?? other.ending,
    resumes: one.resumes === true || other.resumes === true,
    claims: (name) => one.claims(name) || other.claims(name),
    ownCalls: (name) => one.ownCalls?.(name) ?? other.ownCalls?.(name),
    start: (call, place) => of(call.name).start?.(call, place),
    cites: (text) => [...(one.cites?.(text) ?? []), ...(other.cites?.(text) ?? [])],
    run: (call, place, running) => of(call.name).run(call, place, running),
  };
}
