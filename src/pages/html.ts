/** The frame of every page, and its headers. */
import { hash } from 'node:crypto';

const STYLE = `:root{--text:#1b1f24;--soft:#57606a;--line:#d0d7de;--back:#fff;--code:#f2f4f7;--link:#0550ae;--get:#116329;--write:#9a3412}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9aa4af;--line:#30363d;--back:#0d1117;--code:#161b22;--link:#79b8ff;--get:#7ee787;--write:#ffa657}}
*{box-sizing:border-box}html{scroll-padding-top:1rem}
body{margin:0;font:16px/1.55 system-ui,sans-serif;color:var(--text);background:var(--back);overflow-wrap:anywhere}
a{color:var(--link)}main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem;min-width:0}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}h3{font-size:1rem;margin:0}h4{font-size:.9rem;margin:1rem 0 .25rem}
code,pre{font:.875em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}code{background:var(--code);padding:.1em .3em;border-radius:4px}
pre{background:var(--code);border:1px solid var(--line);border-radius:6px;padding:.75rem;overflow-x:auto;overflow-wrap:normal}pre code{padding:0;background:none}
table{border-collapse:collapse;width:100%}th{white-space:nowrap;width:1%}th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line)}
.soft{color:var(--soft)}ul{padding-left:1.1rem;margin:.25rem 0}li{margin:.15rem 0}summary{cursor:pointer}
.layout{display:grid;grid-template-columns:17rem minmax(0,1fr)}.layout nav{border-right:1px solid var(--line);padding:1rem;font-size:.875rem;position:sticky;top:0;height:100vh;overflow-y:auto}
nav ul{list-style:none;padding-left:.75rem}nav a{text-decoration:none}
.operation{border:1px solid var(--line);border-radius:6px;padding:.75rem;margin:1rem 0}
.method{display:inline-block;min-width:3.6rem;font-weight:600;color:var(--write)}.get{color:var(--get)}
.members{list-style:none;padding-left:.9rem;border-left:2px solid var(--line)}
@media(max-width:50rem){.layout{display:block}.layout nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}}`;

const STYLE_HASH = hash('sha256', STYLE, 'base64');

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** A piece of HTML; texts that are put into `markup` are escaped, pieces are not. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Content = Markup | string | number | undefined | readonly Content[];

export function markup(strings: TemplateStringsArray, ...values: Content[]): Markup {
  let text = strings[0]!;
  for (const [index, value] of values.entries()) text += rendered(value) + strings[index + 1]!;
  return new Markup(text);
}

/** A text in which `code` stands between backticks, as the descriptions of operations have it. */
export function prose(text: string): Markup {
  const pieces = text.split('`');
  if (pieces.length % 2 === 0) return new Markup(escaped(text));
  return new Markup(
    pieces.map((piece, at) => (at % 2 === 0 ? escaped(piece) : `<code>${escaped(piece)}</code>`)).join(''),
  );
}

export function page(title: string, body: Markup): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body>${body.text}</body></html>
`;
}

function rendered(value: Content): string {
  if (value === undefined) return '';
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(rendered).join('');
  return escaped(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
