/** Something that keeps the gateway from starting and that its operator can mend, told in words. */
export class StartError extends Error {}
