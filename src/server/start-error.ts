/** A start-up problem that the operator can fix; the message says how. */
export class StartError extends Error {}
