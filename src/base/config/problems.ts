/** All problems of a configuration, collected and reported together. They never contain values. */

export interface Problem {
  /** Path of the yaml file as given, or the environment variable. */
  source: string;
  /** 1-based; absent for environment variables and files that cannot be read. */
  line?: number;
  column?: number;
  /** e.g. `providers[0].models[2].pricing.prompt`; '' for the document itself. */
  path: string;
  message: string;
}

/** Thrown by `loadConfig`; the message has one line for each problem. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(render).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

function render({ source, line, column, path, message }: Problem): string {
  const place = line === undefined ? source : `${source}:${line}:${column}`;
  return [place, path, message].filter((word) => word !== '').join(' ');
}
