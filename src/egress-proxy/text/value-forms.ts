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
  const bytes = Buffer.from(value);
  // Many services read headers as Latin-1.
  const asLatin1 = bytes.toString('latin1');
  const texts = asLatin1 === value ? [value] : [value, asLatin1];
  const forms = [
    ...texts.flatMap(secretForms).flatMap(escapedForms),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ];
  return [...new Set(forms)].filter(({ length }) => length >= MIN_SCRUBBED_LENGTH);
}

/**
 * A text as the libraries of services write it in JSON, URLs, forms, HTML and XML. They differ in the characters that they escape:
 * PHP `/`, Python those outside ASCII, Go and Rails `<>&`, Gson also `=` and `'`, .NET also `"` and `+`; in HTML, Mustache also `/`.
 */
function escapedForms(text: string): string[] {
  const json = writtenIn('json', text);
  const form = writtenIn('form', text);
  const xml = writtenIn('xml', text);
  return [
    ...[text, json, json.replaceAll('/', '\\/'), unicodeEscaped(json, /[\u0080-\uffff]/g)],
    ...[unicodeEscaped(json, /[<>&\u2028\u2029]/g), unicodeEscaped(json, /[<>&='\u2028\u2029]/g)],
    unicodeEscaped(json.replaceAll('\\"', '\\u0022'), /[<>&+'`\u007f-\uffff]/g, true),
    ...[form, lowerEscapes(form), form.replaceAll('%20', '+'), lowerEscapes(encodeURIComponent(text.toWellFormed()))],
    ...[xml, xml.replaceAll('&#39;', "'"), xml.replaceAll('&#39;', '&apos;'), xml.replaceAll('&#39;', '&#x27;')],
    ...[xml.replaceAll('&quot;', '"'), xml.replaceAll('&quot;', '&#34;')],
    xml.replace(/[/`=]/g, (char) => `&#x${char.charCodeAt(0).toString(16).toUpperCase()};`),
  ];
}

/** JSON with these characters as escapes. */
function unicodeEscaped(json: string, characters: RegExp, isUpper = false): string {
  return json.replace(characters, (char) => {
    const digits = char.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${isUpper ? digits.toUpperCase() : digits}`;
  });
}

function lowerEscapes(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (encoded) => encoded.toLowerCase());
}

/** By content type, for the latest ones: services use few. */
const SYNTAXES = new Map<string, Syntax | null>();
const MOST_SYNTAXES = 64;
const LONGEST_TYPE = 128;

/** The syntax of a body by its content type. Null: a body of this type is not text, so its length must not change. */
export function syntaxOf(contentType = ''): Syntax | null {
  const known = SYNTAXES.get(contentType);
  if (known !== undefined) return known;
  const syntax = readSyntax(contentType);
  if (SYNTAXES.size < MOST_SYNTAXES && contentType.length <= LONGEST_TYPE) SYNTAXES.set(contentType, syntax);
  return syntax;
}

function readSyntax(contentType: string): Syntax | null {
  const [type = ''] = contentType.trim().toLowerCase().split(/\s*;/, 1);
  if (type === '') return 'raw';
  if (/[/+]json$|^application\/(?:x-ndjson|json-seq|jsonl|x-json|csp-report|graphql\+json)$/.test(type)) return 'json';
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (/[/+]xml$/.test(type)) return 'xml';
  return TEXT.test(type) ? 'raw' : null;
}

const TEXT = /^text\/|^multipart\/|^application\/(?:javascript|ecmascript|graphql|sql|yaml|x-yaml|toml|x-sh|jwt|jose)$/;
