/** Checks that the gateway can listen, with messages for the operator. */
import type { Config } from '../base/config.ts';
import { refusalToListen } from '../http/address.ts';
import { certificateProblem } from '../http/certificate.ts';
import { StartError } from './start-error.ts';

type Address = Pick<Config, 'host' | 'port'>;

/** Rejects before anything is created if the gateway could not serve. */
export async function checkListening(config: Address & Pick<Config, 'tls'>): Promise<void> {
  const { tls } = config;
  const problem = tls === null ? undefined : certificateProblem(tls.certificate, tls.key.reveal());
  if (problem !== undefined) {
    throw new StartError(
      `the certificate and its key cannot be used (${problem}): check GATEHOUSE_TLS_CERT_FILE and GATEHOUSE_TLS_KEY_FILE`,
    );
  }
  const code = await refusalToListen(config.host, config.port);
  if (code !== undefined) throw listenError(code, config);
}

/** Explains an error of `listen`. */
export function refusedAt(address: Address): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw listenError(error.code ?? error.message, address);
  };
}

/** An error whose message already is for the operator. */
export function forOperator(error: Error): never {
  throw new StartError(error.message, { cause: error });
}

function listenError(code: string, { host, port }: Address): StartError {
  switch (code) {
    case 'EADDRINUSE':
      return new StartError(
        `port ${port} on ${host} is in use by another program (EADDRINUSE): stop it, or set GATEHOUSE_PORT to a free port`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new StartError(`${host} is not an address of this machine (${code}): set GATEHOUSE_HOST`);
    case 'EACCES':
      return new StartError(
        `the account that runs the gateway may not listen on port ${port}: set GATEHOUSE_PORT to 1024 or more`,
      );
    default:
      return new StartError(`cannot listen on ${host}:${port} (${code}): check GATEHOUSE_HOST and GATEHOUSE_PORT`);
  }
}
