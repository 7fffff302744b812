/** Calls of tools that a messages service has run itself, for clients of other formats and from upstreams of those. */
import type { OpaquePart, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type EndedCall, type ServedCall, type ServedResult, shownId } from '../conversation/served-call.ts';

type Tool = ServedCall['tool'];

/** The tools, by the names in `server_tool_use` blocks, with the member of the input that is shown. */
const TOOLS: Readonly<Record<string, readonly [Tool, string]>> = {
  web_search: ['web_search', 'query'],
  web_fetch: ['web_fetch', 'url'],
  code_execution: ['code_execution', 'code'],
  bash_code_execution: ['code_execution', 'command'],
};

/** Adds to blocks what they say. One instance per answer, since a result repeats its call. */
export class ServedCalls {
  readonly #calls = new Map<string, ServedCall>();

  noted<P extends Part>(part: P): P {
    if (part.type === 'opaque') this.#note(part);
    return part;
  }

  #note(part: OpaquePart): void {
    const block = fieldsOf(part.value);
    if (block['type'] === 'server_tool_use') {
      const [tool, member] = TOOLS[textOf(block['name'])] ?? [];
      if (tool === undefined) return;
      const id = textOf(block['id']);
      part.served = { id, tool, input: textOf(fieldsOf(block['input'])[member!]) };
      this.#calls.set(id, part.served);
      return;
    }
    const call = this.#calls.get(textOf(block['tool_use_id']));
    if (call !== undefined) part.served = { ...call, result: resultOf(call.tool, block['content']) };
  }
}

function resultOf(tool: Tool, content: unknown): ServedResult {
  const { type, stdout, stderr, return_code: code } = fieldsOf(content);
  const failed = textOf(type).endsWith('_error');
  if (tool === 'code_execution') return { failed: failed || code !== 0, text: `${textOf(stdout)}${textOf(stderr)}` };
  if (tool === 'web_fetch') return { failed };
  const pages = listOf(content).map((entry) => {
    const { url, title, page_age: age } = fieldsOf(entry);
    const published = textOrUndefined(age);
    return { url: textOf(url), title: textOf(title), ...(published !== undefined && { published }) };
  });
  return { failed, pages };
}

/** Tools that cloud providers may lack although the vendor of their models has them. */
const OF_VENDOR = /^(web_search|web_fetch|(?:bash_|text_editor_)?code_execution)(?:_tool_result)?$/;

/** Whether the block is of a tool that this endpoint does not have, and therefore rejects. */
export function isOfMissingTool({ type, name }: Fields, { dialect, nativeTools = [] }: EncodeTarget): boolean {
  if (dialect.messages?.hosted === undefined) return false;
  const [, tool] = OF_VENDOR.exec(textOf(type === 'server_tool_use' ? name : type)) ?? [];
  return tool !== undefined && !nativeTools.some((row) => row.format === 'messages' && row.tool === tool);
}

/** The blocks that show a call of another format's upstream; none for what this format cannot show. */
export function servedBlocks(call: EndedCall): Fields[] {
  const id = shownId('srvtoolu', call);
  const shown = shownCall(call);
  if (shown === undefined) return [];
  const caller = { type: 'direct' };
  return [
    { type: 'server_tool_use', id, name: call.tool, input: shown.input, caller },
    { type: `${call.tool}_tool_result`, tool_use_id: id, content: shown.content, caller },
  ];
}

function shownCall({ tool, input, result }: EndedCall): { input: Fields; content: unknown } | undefined {
  const error = { type: `${tool}_tool_result_error`, error_code: 'unavailable' };
  switch (tool) {
    case 'web_search': {
      const pages = (result.pages ?? []).map(({ url, title, published }) => ({
        type: 'web_search_result',
        url,
        title,
        encrypted_content: '',
        page_age: published ?? null,
      }));
      return { input: { query: input }, content: result.failed ? error : pages };
    }
    case 'code_execution': {
      const output = { stdout: result.text ?? '', stderr: '', return_code: result.failed ? 1 : 0, content: [] };
      return { input: { code: input }, content: { type: 'code_execution_result', ...output } };
    }
    case 'web_fetch':
      // The format requires the page, which other upstreams do not tell.
      return undefined;
  }
}
