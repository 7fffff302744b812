/** Finder of prompt injection, by typical phrases. */
import { allAt, type Offsets, offsetsOf } from './offsets.ts';
import type { Span } from './reading.ts';

/** Up to `words` other words between two parts of a phrase. */
const gap = (words: number) => `(?:[\\s,]{1,5}[\\w'-]{1,20}){0,${words}}?[\\s,:]{1,5}`;
const ORDERS =
  '(?:instructions?|prompts?|directives?|guidelines?|rules|orders|commands|programming|training|constraints)';
const EARLIER = '(?:previous|prior|above|earlier|preceding|foregoing|initial|original|existing|system|developer)';

/** `offsets.ts` lists the beginning of each phrase. */
const PHRASES = [
  // ... ignore all previous instructions
  `(?:ignore|disregard|forget|override|bypass|neglect|discard|drop)${gap(3)}${EARLIER}${gap(2)}${ORDERS}`,
  `(?:ignore|disregard|forget|override|discard)${gap(1)}(?:all|any|every|everything)${gap(3)}(?:you|i|we)${gap(2)}(?:told|given|instructed|learned|said)`,
  `(?:ignore|disregard|forget|override)\\s{1,5}(?:all\\s{1,5}(?:of\\s{1,5})?)?(?:your|the|those|these)\\s{1,5}${ORDERS}`,
  `(?:do not|don't|stop)\\s{1,5}(?:follow|obey)(?:ing)?${gap(2)}(?:${EARLIER}|your)${gap(1)}${ORDERS}`,
  // ... reveal your system prompt
  `(?:reveal|show|print|output|repeat|display|leak|expose|tell|give|recite)${gap(4)}(?:your|the)\\s{1,5}(?:(?:hidden|secret|full|initial|original|entire|exact)\\s{1,5}){0,2}(?:system|developer|initial|hidden|secret)\\s{1,5}(?:prompt|message|instructions?)`,
  `(?:repeat|print|output)${gap(3)}(?:words|text|everything)\\s{1,5}above`,
  // ... you are DAN now
  "(?:you are|act as|pretend to be|become|roleplay as)(?:[\\s,]{1,5}[\\w'-]{1,20}){0,3}?[\\s,]{1,5}(?:DAN|jailbroken|unrestricted|uncensored|unfiltered|in (?:developer|god|sudo|debug|jailbreak) mode)\\b",
  'do anything now',
  '(?:enable|enter|activate|switch to|engage)\\s{1,5}(?:developer|jailbreak|god|sudo|dan|unrestricted)\\s{1,5}mode',
  '(?:developer|jailbreak|god|sudo|dan)\\s{1,5}mode\\s{1,5}(?:is\\s{1,5})?(?:enabled|activated|on)\\b',
  `(?:without|no longer|free (?:of|from)|not bound by|no)\\s{1,5}(?:have\\s{1,5}|bound by\\s{1,5})?(?:any\\s{1,5}|all\\s{1,5}|your\\s{1,5})?(?:ethical|moral|safety|content|openai|anthropic)(?:\\s{1,5}(?:and|or)\\s{1,5}\\w{1,15})?\\s{1,5}(?:restrictions|guidelines|filters|limitations|constraints|policies|policy|rules)`,
  "(?:pretend|imagine|act as if|behave as if)(?:[\\s,]{1,5}[\\w'-]{1,20}){0,4}?\\s{1,5}(?:no|without)\\s{1,5}(?:any\\s{1,5})?(?:rules|restrictions|limitations|guidelines|filters)",
  '(?:new|updated|real|actual)\\s{1,5}(?:system\\s{1,5})(?:prompt|instructions?|message)\\s{0,3}:',
  '(?:system|safety|admin)\\s{1,5}override\\b\\s{0,3}[:!]',
  // ... the marks of templates
  '<\\|(?:im_start|system|start_header_id)\\|>',
  '<<SYS>>|\\[/?INST\\]',
  '^#{2,4}\\s{0,3}(?:system|new)\\s{1,3}(?:prompt|instructions?)\\b',
  // ... in other languages
  '(?:ignoriere|vergiss|missachte)(?:\\s{1,5}\\w{1,20}){0,2}?\\s{1,5}(?:vorherigen|bisherigen|obigen|fruheren|vorigen)\\s{1,5}(?:anweisungen|instruktionen|befehle|regeln)',
  '(?:ignore[zr]?|oublie[zr]?)(?:\\s{1,5}\\w{1,20}){0,3}?\\s{1,5}(?:instructions|consignes|regles)\\s{1,5}(?:precedentes|anterieures|ci-dessus)',
  '(?:ignora|olvida|descarta)(?:\\s{1,5}\\w{1,20}){0,3}?\\s{1,5}(?:instrucciones|ordenes|reglas|istruzioni)\\s{1,5}(?:anteriores|previas|precedenti)',
];

const INJECTION = new RegExp(
  PHRASES.map((phrase) => (/^\w|^\(/.test(phrase) ? `\\b(?:${phrase})` : phrase)).join('|'),
  'yim',
);

export function promptInjections(text: string, { injections }: Offsets = offsetsOf(text)): Span[] {
  return allAt(INJECTION, text, injections);
}
