/** How a value is written at each place of a request, and in which forms it is looked for in a response. */
import { secretForms } from '../../base/secret-forms.ts';

/** The syntax of the text around a placeholder. */
export type Syntax = 'raw' | 'json' | 'form' | 'xml';

/** Shorter values are not scrubbed: they are part of too much other text. */
const MIN_SCRUBBED_LENGTH = 6;

/** The value as it has to be written inside of a text. `form` is also that of paths and queries. */
export function writtenIn(syntax: Syntax, value: string): string {
  switch (syntax) {
    case 'raw':
      return value;
    case 'json':
      return JSON.stringify(value).slice(1, -1);
    case 'form':
      return strictlyEncoded(value);
    case 'xml':
      return value.replace(/[&<>"']/g, (char) => XML[char]!);
  }
}

const XML: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Encodes everything but letters, digits and `-._~` (RFC 3986). */
function strictlyEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The forms in which services are known to repeat a value. None for a short value. */
export function scrubbedForms(value: string): readonly string[] {
  if (value.length < MIN_SCRUBBED_LENGTH) return [];
  const json = writtenIn('json', value);
  const form = writtenIn('form', value);
  const bytes = Buffer.from(value);
  const forms = [
    ...secretForms(value),
    ...[json, json.replaceAll('/', '\\/'), asciiJson(json)],
    ...[form, lowerEscapes(form), form.replaceAll('%20', '+'), lowerEscapes(encodeURIComponent(value.toWellFormed()))],
    ...[writtenIn('xml', value), writtenIn('xml', value).replaceAll('&#39;', "'")],
    ...[bytes.toString('hex'), bytes.toString('hex').toUpperCase()],
  ];
  return [...new Set(forms)].filter(({ length }) => length >= MIN_SCRUBBED_LENGTH);
}

/** JSON with every character outside ASCII as an escape, as Python writes it. */
function asciiJson(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function lowerEscapes(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (encoded) => encoded.toLowerCase());
}

/** The syntax of a body by its content type. Null: a body of this type is not text, so its length must not change. */
export function syntaxOf(contentType: string | undefined): Syntax | null {
  const [type = ''] = (contentType ?? '').trim().toLowerCase().split(/\s*;/, 1);
  if (type === '') return 'raw';
  if (/[/+]json$|^application\/(?:x-ndjson|json-seq|jsonl|x-json|csp-report|graphql\+json)$/.test(type)) return 'json';
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (/[/+]xml$/.test(type)) return 'xml';
  return TEXT.test(type) ? 'raw' : null;
}

const TEXT = /^text\/|^multipart\/|^application\/(?:javascript|ecmascript|graphql|sql|yaml|x-yaml|toml|x-sh|jwt|jose)$/;
