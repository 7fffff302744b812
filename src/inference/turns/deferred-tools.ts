/** Deferred tools on the turn loop: the gateway runs the searches of a model that receives its tools on demand. */

import { DeferredConversation, isToolSearch } from '../../formats/adapters/deferred-tools/index.ts';
import type { Conversation, ToolCallPart } from '../../formats/conversation/conversation.ts';
import {
  CALL_TOOL,
  type CompileRegex,
  type DeferredSearch,
  SEARCH_TOOL,
} from '../../formats/conversation/deferred-search.ts';
import { isFields } from '../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import type { GatewayToolKind, GatewayTools, ToolRun } from './gateway-tools.ts';

let compile: CompileRegex | undefined;

/** Loads the engine (RE2, linear time). Only requests that search by regular expression need it. */
async function loadRegex(): Promise<void> {
  const { RE2JS } = await import('re2js');
  compile = (pattern) => {
    try {
      const expression = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
      return (text) => expression.matcher(text).find();
    } catch {
      return undefined;
    }
  };
}

function searchesByRegex(settings: unknown): boolean {
  return isFields(settings) && isFields(settings['search']) && settings['search']['type'] === 'regex';
}

/** More than the definitions of the two tools that the model gets instead of the deferred ones. */
const OWN_TOOLS_BYTES = 4 * 1024;

export const deferredTools: GatewayToolKind = {
  wanted({ document: { structure } }) {
    const { deferred_tools: settings, tools } = structure;
    const asks = settings !== undefined && settings !== null;
    if (!asks && !(Array.isArray(tools) && tools.some(isToolSearch))) return undefined;
    return {
      definitionBytes: OWN_TOOLS_BYTES,
      lasting: false,
      load: () => (compile === undefined && searchesByRegex(settings) ? loadRegex() : undefined),
      begin: (conversation, format) => begin(conversation, format),
    };
  },
};

function begin(all: Conversation, format: ServedFormat): GatewayTools {
  const conversation = withoutToolSearch(all);
  const { deferred } = conversation;
  return deferred === undefined ? nothingDeferred(conversation) : new DeferredTools(conversation, deferred, format);
}

/** The tool only says that the gateway searches; the model gets functions for that. */
function withoutToolSearch(conversation: Conversation): Conversation {
  const { tools, ...others } = conversation;
  const left = tools?.filter((tool) => tool.type !== 'opaque' || !isToolSearch(tool.value)) ?? [];
  return left.length === 0 ? others : { ...others, tools: left };
}

/** For a request that could search, but has nothing to search for. */
function nothingDeferred(conversation: Conversation): GatewayTools {
  return { conversation, claims: () => false, run: (call) => ({ call }) };
}

class DeferredTools implements GatewayTools {
  readonly #rewritten: DeferredConversation;
  readonly #trace: ServedFormat['searchTrace'];
  #stepCount = 0;

  /**
   * @throws Uncarried for several choices
   * @throws GatewayError 400 when the history names a deferred tool that is missing from the request
   */
  constructor(conversation: Conversation, deferred: DeferredSearch, { searchTrace }: ServedFormat) {
    if ((conversation.choices ?? 1) > 1) throw new Uncarried('n', 'deferred tools support a single choice only');
    this.#trace = searchTrace;
    this.#rewritten = new DeferredConversation(conversation, deferred, compile ?? NO_REGEX, searchTrace);
  }

  get conversation(): Conversation {
    return this.#rewritten.conversation;
  }

  claims(name: string): boolean {
    return name === SEARCH_TOOL || name === CALL_TOOL;
  }

  run(call: ToolCallPart): ToolRun {
    const run = this.#rewritten.run(call);
    if ('call' in run) return run;
    const { result } = run.step;
    const step = { id: call.id, visible: this.#trace.show(run.step, this.#stepCount), result };
    this.#stepCount += 1;
    return { step };
  }
}

/** For searches by words, which compile no expressions. */
const NO_REGEX: CompileRegex = () => undefined;
