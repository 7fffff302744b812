import { type Tool, ToolError } from './tool.ts';

const TIMEOUT_MS = 30_000;
const LARGEST_PAGE_BYTES = 2 * 1024 * 1024;
const TEXT = /^(?:text\/|application\/(?:json|xml|javascript|yaml|[\w.-]+\+(?:json|xml))\b)/i;

export const fetchPage: Tool = {
  name: 'fetch',
  description:
    'Requests a URL by GET and returns the text of the response. Markup of HTML is removed. For anything else, such as other methods, headers or files, use curl in the shell.',
  parameters: {
    type: 'object',
    properties: { url: { type: 'string', description: 'http or https.' } },
    required: ['url'],
  },
  kind: 'fetch',
  needsConsent: true,
  title: ({ url }) => `fetch ${String(url)}`,
  async run({ url }, { clock, signal }) {
    const timeout = new AbortController();
    const timer = clock.timer(TIMEOUT_MS, () =>
      timeout.abort(new ToolError(`no answer within ${TIMEOUT_MS / 1_000} s`)),
    );
    try {
      return await request(String(url), AbortSignal.any([signal, timeout.signal]));
    } catch (error) {
      signal.throwIfAborted();
      const { message, cause } = error as Error;
      throw new ToolError(cause instanceof Error ? `${message}: ${cause.message}` : message);
    } finally {
      timer.cancel();
    }
  },
};

async function request(url: string, signal: AbortSignal): Promise<string> {
  if (!/^https?:\/\//i.test(url)) throw new ToolError('url must begin with http:// or https://');
  const response = await fetch(url, {
    signal,
    headers: { accept: 'text/markdown, text/plain, text/html;q=0.8, */*;q=0.5' },
  });
  const type = response.headers.get('content-type') ?? 'text/plain';
  if (!TEXT.test(type)) {
    await response.body?.cancel();
    return `[status ${response.status}, ${type}: not a text, use curl in the shell]`;
  }
  const { text, isCut } = await beginning(response);
  const content = /html/i.test(type) ? withoutMarkup(text) : text;
  return `[status ${response.status}${isCut ? ', only the beginning' : ''}]\n${content}`;
}

async function beginning(response: Response): Promise<{ text: string; isCut: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.byteLength;
    if (bytes > LARGEST_PAGE_BYTES) break;
  }
  return { text: Buffer.concat(chunks).subarray(0, LARGEST_PAGE_BYTES).toString(), isCut: bytes > LARGEST_PAGE_BYTES };
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };

/** Readable enough for a model; not for anything that must be exact. Linear in the length. */
function withoutMarkup(html: string): string {
  const lower = html.toLowerCase();
  let text = '';
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<', at);
    if (open === -1) {
      text += html.slice(at);
      break;
    }
    text += html.slice(at, open);
    const hidden = /^<(script|style|noscript|svg)\b/i.exec(html.slice(open, open + 12))?.[1];
    const end = hidden === undefined ? open : endOf(lower, hidden.toLowerCase(), open);
    const close = html.indexOf('>', end);
    if (close === -1) break;
    text += /^<\/?(?:p|div|li|ul|ol|h\d|tr|table|br|section|article|pre|blockquote)\b/i.test(
      html.slice(open, open + 14),
    )
      ? '\n'
      : '';
    at = close + 1;
  }
  return text
    .replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (_whole, name: string) => ENTITIES[name] ?? '')
    .replace(/&#(\d{1,6});/g, (_whole, code: string) => String.fromCodePoint(Math.min(Number(code), 0xffff)))
    .replace(/[ \t]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim();
}

function endOf(lower: string, name: string, from: number): number {
  const end = lower.indexOf(`</${name}`, from);
  return end === -1 ? lower.length : end;
}
