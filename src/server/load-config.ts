/** The configuration of this process; reloaded on SIGHUP. */
import { type Config, ConfigError, loadConfig, machineInputs, needsRestart } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { KINDS } from '../providers/index.ts';

export function readConfig(): Config {
  return loadConfig({ ...machineInputs(), kinds: KINDS });
}

/** A new configuration, or undefined if it is invalid: then the current one stays and the log says why. */
export function rereadConfig(running: Config, log: Log): Config | undefined {
  try {
    const config = readConfig();
    log.info('configuration reloaded', { providers: config.providers.length });
    const waiting = needsRestart(running, config);
    if (waiting.length > 0) log.warn('some settings apply only after a restart', { settings: waiting });
    return config;
  } catch (error) {
    const problem = error instanceof ConfigError ? { problems: error.message } : { cause: error };
    log.error('configuration not reloaded: the previous one stays in use', problem);
    return undefined;
  }
}
