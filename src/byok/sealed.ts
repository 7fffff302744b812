/** Where the credentials of own keys are sealed into, and by what name their changes are told. */

export const PURPOSE = 'byok';
/** Of `byok_keys`. */
export const SEALED_COLUMN = 'sealed';
/** Announced with an own key's id when anything about it changes. */
export const TOPIC = 'byok.keys';
