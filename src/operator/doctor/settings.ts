/** The things on this machine that settings name: data folder, certificate, modules, isolation of sandboxes. */
import type { Config } from '../../base/config.ts';
import type { CommandParts } from '../command.ts';
import { type Finding, note, ok } from './finding.ts';
import { examineCertificate, examineDataFolder } from './machine.ts';
import { examineModules } from './modules.ts';
import { examineIsolation } from './sandboxes.ts';

export async function examineSettings(config: Config, parts: Pick<CommandParts, 'clock' | 'log'>): Promise<Finding[]> {
  return [
    ok('configuration', `${config.file ?? 'no yaml file'}, providers: ${config.providers.length}`),
    ...config.unknownVariables.map(unknownVariable),
    ...examineDataFolder(config.dataDir),
    ...examineCertificate(config, parts.clock),
    ...examineModules(config),
    ...(await examineIsolation({ ...parts, config })),
  ];
}

function unknownVariable({ name, suggested }: Config['unknownVariables'][number]): Finding {
  return note('configuration', `${name} is not a setting${suggested === null ? '' : `; did you mean ${suggested}?`}`);
}
