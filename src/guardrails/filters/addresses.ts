/**
 * The finder of postal addresses: a street with a number in the order of its language, or a post box, with the place that
 * follows. Every expression is tried only where its first word or digit is, and has bounded repetitions.
 */
import { isCommonWord } from './person-names.ts';
import type { Span } from './reading.ts';

/** A word of a name: with a capital, or after one with an apostrophe or a dash. Without its limits, text takes quadratic time. */
const UPPER = 'A-ZŁĐØÆŒÞ';
const LETTERS = `${UPPER}a-złđøßæœıþð`;
const NAME = `[${UPPER}][${LETTERS}]{0,40}(?:['’.-][${LETTERS}]{1,40}){0,4}\\.?`;
const ANY = `[${LETTERS}]{1,40}(?:['’.-][${LETTERS}]{1,40}){0,4}`;
const NUMBER = '\\d{1,5}(?:[A-Za-z](?![A-Za-z]))?(?:[ ]?[-/][ ]?\\d{1,4}[A-Za-z]?(?![A-Za-z0-9]))?';
/** Kinds of streets that mean little else, in any case. */
const STREETS =
  'street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|terrace|crescent|highway|hwy|parkway|pkwy|marg|nagar|colony|layout|salai|vihar|mawatha|esplanade|wharf';
/** Those that are ordinary words, only with capitals. */
const OTHER_STREETS =
  'Av|Court|Ct|Close|Ter|Place|Pl|Square|Sq|Way|Circle|Cir|Trail|Trl|Mews|Gardens|Green|Grove|Row|Walk|Quay|Parade|Pde|Alley|Loop|Plaza|Cross|Main|Path|Gali|Bypass|Broadway|Heights|Park|Hill|Cres|Island|Market';
const UNIT =
  '(?:[,]? {0,2}(?:#|apt\\.?|apartment|suite|ste\\.?|unit|flat|floor|fl\\.?|room|rm\\.?|block|tower|wing)[ ]?(?:no\\.? ?)?[A-Za-z0-9-]{1,6}(?![A-Za-z0-9]))';
const STATES =
  'A[LKZR]|C[AOT]|DE|FL|GA|HI|I[DLNA]|K[SY]|LA|M[EDAINSOT]|N[EVHJMYCD]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[TA]|W[AVIY]|DC|NSW|VIC|QLD|TAS|ACT|AB|BC|MB|NB|NL|NS|NT|NU|ON|PE|QC|SK|YT';
/** The place after a street: one or two names, with a state and a postal code. */
const PLACE = `(?:[,\\n] ?${NAME}(?: ${NAME}){0,3})`;
const CODE =
  '(?:\\d{5}(?:-\\d{4})?|\\d{4} ?[A-Z]{2}|\\d{4}|\\d{3} ?\\d{2,3}|[A-Z]{1,2}\\d[A-Z\\d]? ?\\d[A-Z]{2}|[A-Z]\\d[A-Z] ?\\d[A-Z]\\d|\\d{5}-\\d{3})(?![\\dA-Za-z])';
const REST = `(?:${UNIT}{0,2}(?:${PLACE}{0,2}(?:,? (?:${STATES})(?![a-z]))?(?:[,\\n]? ?${CODE}(?: ${NAME}(?: ${NAME}){0,2})?)?)?)`;

/** Tried at the first digit of a number. */
const AFTER_NUMBER = [
  // 12 Main Street, 221B Baker St
  new RegExp(
    `${NUMBER},? (?:${ANY} |\\d{1,3}(?:st|nd|rd|th) ){1,5}(?:${STREETS})(?![${LETTERS}])\\.?(?: (?:[NSEW]{1,2}|North|South|East|West)(?![${LETTERS}]))?${REST}`,
    'iy',
  ),
  new RegExp(
    `${NUMBER},? (?:${NAME} |\\d{1,3}(?:st|nd|rd|th) ){1,4}(?:${OTHER_STREETS})(?![${LETTERS}])\\.?${REST}`,
    'y',
  ),
  // 12 rue de la Paix, 4 bis avenue Foch
  new RegExp(
    `${NUMBER}(?: (?:bis|ter|quater))?,? (?:(?:rue|avenue|av\\.?|boulevard|bd\\.?|chemin|allee|impasse|quai|sentier|faubourg)(?: (?:d['’]|de|du|des|la|le|les|l['’]))*[ ]?${ANY}|(?:place|cours|route|square|passage)(?: (?:de|du|des|la|le|les))+ ${ANY})(?:[ -]${NAME}){0,4}${REST}`,
    'iy',
  ),
  // 1-2-3 Shibuya, 2-chome
  new RegExp(
    `\\d{1,3}-\\d{1,3}(?:-\\d{1,4})?,? ${NAME}(?:-(?:ku|cho|machi|dori|shi))?(?:, ?${NAME}){1,3}(?: ?\\d{3}-\\d{4})?`,
    'y',
  ),
  // 152, Teheran-ro
  new RegExp(
    `\\d{1,4}(?:-\\d{1,3})?,? (?:${NAME} )?${NAME.replace('\\.?', '')}(?:-(?:ro|gil|daero|dong))(?![a-z])${REST}`,
    'y',
  ),
  // 10115 Berlin after nothing else is no address; 1012 AB Amsterdam is
  new RegExp(`\\d{4} ?[A-Z]{2} ${NAME}(?![A-Za-z])`, 'y'),
];

/** Tried at the beginning of a word of `OPENERS`. */
const AFTER_OPENER = [
  // Calle Mayor 12, Rua Augusta, 1500, Via Roma 3
  new RegExp(
    `(?:calle|c/|avenida|av\\.?|avda\\.?|plaza|pza\\.?|paseo|carrera|cra\\.?|camino|ronda|rambla|carrer|rua|r\\.|travessa|tv\\.|praca|largo|alameda|estrada|via|viale|v\\.le|piazza|p\\.za|corso|vicolo|strada|str\\.|strasse|ul\\.|al\\.|pl\\.|os\\.|ulica|ulitsa|aleja|nam\\.|trida|jalan|jl\\.|duong|rue) ?${ANY}(?: ${ANY}){0,5}(?:,? (?:n[o.]?[o.]?|num\\.?|nr\\.?|#|no\\.?|km|d\\.|house|dom))?[,:]? ?#?${NUMBER}(?: ?- ?\\d{1,4})?${REST}`,
    'iy',
  ),
  new RegExp(
    `(?:p\\.? ?o\\.? ?box|po box|post office box|private bag|postfach|postbus|apartado(?: postal)?|casella postale|boite postale|bp|caixa postal|gpo box|locked bag)(?: (?:no\\.?|n\\.?))? ?#?\\d[\\d ]{0,8}${REST}`,
    'iy',
  ),
  // Flat 4, Plot No. 12, H.No. 3-4-5
  new RegExp(
    `(?:flat|plot|house|h\\.? ?no\\.?|door|shop|apartment|apt\\.?|unit|villa|block|d\\.no\\.?)(?: (?:no\\.?|number))?[ .:#]{0,3}[A-Z]?[-/]?\\d[\\dA-Za-z/-]{0,10},? (?:${ANY}[, ]{1,2}){0,7}(?:${STREETS}|apartments?|towers?|heights|enclave|phase|sector|bagh|pur|puram|halli|wadi|estate|house)(?![a-z])(?:[- ]?\\d{1,3})?${REST}`,
    'iy',
  ),
  // Sector 15, Ataturk Cad. No: 12
  new RegExp(`sector[ -]?\\d{1,3}${PLACE}`, 'iy'),
  new RegExp(
    `${NAME}(?: ${NAME}){0,3} (?:cad(?:desi|\\.)|sok(?:ak|agi|\\.)|bulvari|blv\\.|mah(?:allesi|\\.))(?:,? (?:${NAME} ){0,3}(?:sok(?:ak|agi|\\.)|cad(?:desi|\\.)))? ?(?:no|numara)[.:]{0,2} ?${NUMBER}${REST}`,
    'iy',
  ),
];
const OPENERS =
  /(?<![A-Za-z0-9])(?:calle|c\/|avenida|av\.|av |avda|plaza|pza|paseo|carrera|cra|camino|ronda|rambla|carrer|rua|r\.|travessa|tv\.|praca|largo|alameda|estrada|via|viale|v\.le|piazza|p\.za|corso|vicolo|strada|str\.|strasse|ul\.|al\.|pl\.|os\.|ulica|ulitsa|aleja|nam\.|trida|jalan|jl\.|duong|rue|p\.? ?o\.? ?box|post office|private bag|postfach|postbus|apartado|casella|boite|bp|caixa|gpo|locked|flat|plot|house|h\.? ?no|door|shop|apartment|apt|unit|villa|block|d\.no|sector)/gi;

/** Hauptstrasse 12, Keizersgracht 174, Storgatan 5: the kind of street ends the word, and the number follows. */
const SUFFIXED =
  /(?:strasse|straße|str\.|weg|platz|allee|gasse|ring|damm|ufer|graben|markt|steig|chaussee|straat|laan|gracht|kade|plein|singel|dijk|gatan|vagen|gata|gaten|veien|vegen|vej|vejen|gade|alle|katu|[a-z]{4}tie|kuja| utca| utja| korut| namesti| ut| tere)(?![A-Za-złđøßæœıþð]),? \d{1,4}(?:[A-Za-z](?![A-Za-z]))?(?: ?[-/] ?\d{1,4}[A-Za-z]?(?![A-Za-z]))?/gi;
const LONGEST_PREFIX = 40;
const REST_HERE = new RegExp(REST, 'iy');
const TURKISH = /(?:cad(?:desi|\.)|sok(?:ak|agi|\.)|bulvari|blv\.|mah(?:allesi|\.))(?![a-z])/gi;
const CITY_STATE = new RegExp(
  `(?<![${LETTERS}])${NAME}(?: ${NAME}){0,2}, (?:${STATES}) \\d{5}(?:-\\d{4})?(?!\\d)`,
  'g',
);
/** Names that are followed by a state and a code are short; longer words are not tried. */
const HAN =
  /(?:[\p{Script=Han}]{2,12}(?:路|街|大道|巷|弄)\d{1,5}[号號]|[\p{Script=Han}]{2,4}[都道府県][\p{Script=Han}\p{Script=Katakana}ー]{1,16}[市区町村][\p{Script=Han}\p{Script=Katakana}ー]{0,16}\d{1,3}(?:[丁目番地号-]\d{0,4}){0,4}|[가-힣]{1,8}(?:로|길) ?\d{1,4}(?:-\d{1,3})?)/gu;

export function postalAddresses(text: string): Span[] {
  if (!/\d/.test(text)) return [];
  const spans: Span[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 48 || code > 57) continue;
    const begins =
      at === 0 || !/[\w.,$€£:-]/.test(text[at - 1]!) || (/[,.:]/.test(text[at - 1]!) && !/\d/.test(text[at - 2] ?? ''));
    const match = begins ? firstMatch(AFTER_NUMBER, text, at) : undefined;
    if (match !== undefined) spans.push(match);
    const numbered = begins && match === undefined ? beforeCode(text, at) : undefined;
    if (numbered !== undefined) spans.push(numbered);
    let end = at + 1;
    while (end < text.length && /\d/.test(text[end]!)) end += 1;
    at = (match?.end ?? end) - 1;
  }
  for (const { index } of text.matchAll(OPENERS)) {
    const match = firstMatch(AFTER_OPENER.slice(0, 4), text, index);
    if (match !== undefined) spans.push(match);
  }
  for (const match of text.matchAll(SUFFIXED)) {
    const span = suffixed(text, match.index, match.index + match[0].length);
    if (isStreet(text.slice(span.start, match.index + match[0].length))) spans.push(span);
  }
  for (const { index } of text.matchAll(TURKISH)) {
    const start = beforeName(text, index);
    const match = firstMatch([AFTER_OPENER[4]!], text, start);
    if (match !== undefined) spans.push(match);
  }
  for (const pattern of [CITY_STATE, HAN]) {
    for (const match of text.matchAll(pattern)) spans.push({ start: match.index, end: match.index + match[0].length });
  }
  return separate(spans.filter(({ start, end }) => isPlausible(text.slice(start, end))));
}

/** Nowy Swiat 22, 00-373 Warszawa: a name, a number, a postal code and a name. */
const BEFORE_CODE = new RegExp(
  `${NUMBER}(?:,|\\n) ?(?:\\d{2}-\\d{3}|\\d{5}|\\d{3} \\d{2}|\\d{4}(?: ?[A-Z]{2})?) ${NAME}(?: ${NAME}){0,2}`,
  'y',
);

function beforeCode(text: string, at: number): Span | undefined {
  const match = firstMatch([BEFORE_CODE], text, at);
  if (match === undefined) return undefined;
  const start = beforeName(text, at);
  return start < at && /^\p{Lu}/u.test(text.slice(start, at)) ? { start, end: match.end } : undefined;
}

function firstMatch(patterns: readonly RegExp[], text: string, at: number): Span | undefined {
  for (const pattern of patterns) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) return { start: at, end: at + match[0].length };
  }
  return undefined;
}

/** Street names have a capital or are long compounds; ordinary words with the same ending are in the list of words. */
function isStreet(found: string): boolean {
  const name = /^[^\d,]*/.exec(found)![0].trim();
  const last = name.slice(name.lastIndexOf(' ') + 1).toLowerCase();
  if (/(?:strasse|straße|straat|gracht|gatan|gata|gasse|chaussee|allee|laan)$|str\.$/.test(last))
    return last.length > 6 || name.includes(' ');
  if (isCommonWord(last.replace('.', '')))
    return /^\p{Lu}\S* \p{Lu}/u.test(name) && !isCommonWord(name.slice(0, name.indexOf(' ')).toLowerCase());
  return /^\p{Lu}/u.test(name) && last.length > 5;
}

/** The word before the kind of street, and a place after the number. */
function suffixed(text: string, at: number, end: number): Span {
  const start = beforeName(text, at);
  REST_HERE.lastIndex = end;
  return { start, end: end + (REST_HERE.exec(text)?.[0].length ?? 0) };
}

/** The start of up to four words with capitals before an offset. */
function beforeName(text: string, at: number): number {
  const before = text.slice(Math.max(0, at - LONGEST_PREFIX), at);
  const words = /(?:\p{Lu}[\p{L}'’.-]*[ -]){0,3}[\p{L}'’.-]*[ ]?$/u.exec(before)?.[0] ?? '';
  return at - words.trimStart().length;
}

/** Words before a kind of street that show that it is not one: `5 minutes on the way`, `3 years in court`. */
const OTHERWISE =
  /^\d+[a-z]? (?:(?:minutes?|hours?|days?|weeks?|months?|years?|times?|people|percent|items?|steps?|miles?|km|metres?|meters?|more|other|of|the|and|in|on|by|to|for|ways?|different|different|new|big|small|first|second|best|top|stars?|points?|users?|files?|lines?|tests?|bugs?|tips?|reasons?|players?|cars?|guests?|tables?|pages?)\b)/i;
/** Words of sentences, which no name of a street has in lower case. */
const SENTENCE =
  / (?:the|of|in|on|at|this|that|our|my|your|his|her|their|an?|and|or|to|from|with|by|along|is|are|was|were|for|than|over|per) (?!\p{Lu})/u;
const THE_WAY =
  /\b(?:the|a|an|in|on|is|are|was|that|this|with|your|my|our|their|his|her|every|each|no|one|of)\b[^,\n]*\b(?:way|court|place|close|drive|row|walk|loop|main|cross|path|square|circle|trail|plaza|place)\.?$/i;

function isPlausible(found: string): boolean {
  return (
    !OTHERWISE.test(found) &&
    !THE_WAY.test(found) &&
    !(SENTENCE.test(found) && /^\d/.test(found) && !/\d\D*\d/.test(found))
  );
}

/** In order; overlapping matches are merged. */
function separate(spans: readonly Span[]): Span[] {
  const separated: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = separated.at(-1);
    if (last !== undefined && span.start < last.end) last.end = Math.max(last.end, span.end);
    else separated.push({ ...span });
  }
  return separated;
}
