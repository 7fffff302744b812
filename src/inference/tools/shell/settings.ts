/** The settings that requests give `svc:bash` and `svc:shell`. */
import type { Fields } from '../../../formats/conversation/fields.ts';
import { Members } from '../../tool-settings.ts';
import {
  checkEnvironment,
  checkSleep,
  type Environment,
  environmentOf,
  inContainer,
  type RequestContainers,
} from '../container/index.ts';
import type { Installation, RequestedTool } from '../tool.ts';

/** @throws GatewayError 400 with the path of a member that is not valid. Unknown members are ignored. */
export function checkSettings(settings: Fields, path: string, engines: readonly string[]): void {
  new Members(settings, path).word('engine', engines);
  checkEnvironment(settings['environment'], `${path}.environment`);
  checkSleep(settings['sleep_after_seconds'], `${path}.sleep_after_seconds`);
}

type Declaration = Pick<RequestedTool, 'functionName' | 'description' | 'parameters'>;

/**
 * The tool of one request: run in a container with the engine `svc`, otherwise a function that the client runs.
 * @param settings checked
 * @throws GatewayError 400 if the gateway has no sandboxes
 */
export function requested(
  settings: Fields,
  path: string,
  installation: Installation,
  tool: { declared: Declaration; inContainer(containers: RequestContainers, environment: Environment): RequestedTool },
): RequestedTool {
  if (settings['engine'] !== 'svc') return tool.declared;
  const environment = environmentOf(settings);
  return inContainer(path, installation, environment, (containers) => tool.inContainer(containers, environment));
}
