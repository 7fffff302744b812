/** The command line: `gatehouse serve` (the default), `gatehouse version`, `gatehouse help`. */
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { ConfigError } from './base/config.ts';
import { StartError, serveAsPrimary } from './primary.ts';
import { serveAsWorker } from './worker.ts';

const HELP = `gatehouse: a gateway in front of every model provider

  gatehouse [serve]    start it (settings: environment variables and gatehouse.yaml, see README.md)
  gatehouse version    print the version
  gatehouse help       print this`;

async function main(command: string): Promise<void> {
  if (cluster.isWorker) return serveAsWorker();
  switch (command) {
    case 'serve':
      return serveAsPrimary();
    case 'version':
    case '--version':
      console.log(version());
      return;
    case 'help':
    case '--help':
      console.log(HELP);
      return;
    default:
      console.error(`unknown command ${JSON.stringify(command)}\n\n${HELP}`);
      process.exitCode = 2;
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return (manifest as { version: string }).version;
}

main(process.argv[2] ?? 'serve').catch((error: unknown) => {
  // What an operator can mend is told in words; anything else is a bug and shows where it is.
  console.error(error instanceof ConfigError || error instanceof StartError ? error.message : error);
  process.exit(1);
});
