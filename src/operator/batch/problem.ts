/** Why a command of `gatehouse batch` ends early, and its exit codes. */
export const EXIT = {
  /** Requests of the batch failed. */
  requestsFailed: 1,
  /** Wrong arguments, or a wrong input file. */
  wrongInput: 2,
  /** The batch failed, expired or was cancelled. */
  batchFailed: 3,
  /** The gateway cannot be reached, or refuses. */
  gateway: 4,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

/** The message is for the person at the terminal. */
export class BatchProblem extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
