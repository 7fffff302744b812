/** The consent page: plain HTML without scripts. All external text is escaped. */
import { hash } from 'node:crypto';
import type { AuthRequest } from './request.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dt{color:#57606a}dd{margin:0;overflow-wrap:anywhere}
label{display:block;margin:1rem 0 .25rem}input{width:100%;box-sizing:border-box;padding:.5rem;font:inherit}
button{font:inherit;padding:.5rem 1.25rem;margin:1rem .5rem 0 0}.problem{border-left:4px solid #cf222e;padding-left:.75rem}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}dt{color:#8d96a0}}`;
const STYLE_HASH = hash('sha256', STYLE, 'base64');

/**
 * The page loads nothing, cannot be framed, and submits its form only to this gateway.
 * @param callback target of the redirect after the form, which browsers count as a form action
 */
export function pageHeaders(callback?: URL): Record<string, string> {
  const form = callback === undefined ? "'none'" : `'self' ${callback.origin}`;
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${form}; frame-ancestors 'none'; base-uri 'none'`,
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  };
}

interface Consent {
  request: AuthRequest;
  /** The signed form data, and its signature. */
  sealed: string;
  token: string;
  problem?: string;
}

export function consentPage({ request: { callback, key }, sealed, token, problem }: Consent): string {
  const facts: [string, string | undefined][] = [
    ['Name of the key', key.name],
    [
      'Spending limit',
      key.limit === undefined ? 'none' : `${key.limit} USD${key.limit_reset ? `, ${key.limit_reset}` : ''}`,
    ],
    ['Expires', key.expires_at ?? 'never'],
    ['Workspace', key.workspace_id ?? 'default'],
    ['Goes to', callback.href],
  ];
  const rows = facts.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value ?? '')}</dd>`).join('');
  return page(
    `An application at ${callback.host} requests a key`,
    `<p>If you allow it, <strong>${escaped(callback.host)}</strong> gets an inference key of this gateway that spends in your name.</p>
<dl>${rows}</dl>
${problem === undefined ? '' : `<p class="problem" role="alert">${escaped(problem)}</p>`}
<form method="post" action="/auth" autocomplete="off">
<input type="hidden" name="request" value="${escaped(sealed)}"><input type="hidden" name="token" value="${escaped(token)}">
<label for="key">Your management key, which stays here</label>
<input id="key" name="key" type="password" autocomplete="off" spellcheck="false" maxlength="512">
<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Refuse</button>
</form>`,
  );
}

export function problemPage(problem: string): string {
  return page('Request failed', `<p class="problem" role="alert">${escaped(problem)}</p>`);
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escaped(title)}</title><style>${STYLE}</style></head><body><main><h1>${escaped(title)}</h1>${body}</main></body></html>`;
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
