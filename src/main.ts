/** The command line: `gatehouse serve` (the default), what an operator does beside it (`operator/`), version and help. */
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { ConfigError } from './base/config/problems.ts';
import { StartError } from './start-error.ts';

// Compiled code is kept beside the dependencies, so that the next start takes half the time; where that folder cannot be
// written, nothing is kept. Everything else is imported after this.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/gatehouse', import.meta.url)));

const HELP = `gatehouse: a gateway in front of every model provider

  gatehouse [serve]    start it (settings: environment variables and gatehouse.yaml, see README.md)
  gatehouse version    print the version
  gatehouse help       print this
`;

async function main(command: string): Promise<void> {
  if (cluster.isWorker) return (await import('./worker.ts')).serveAsWorker();
  switch (command) {
    case 'serve':
      return (await import('./primary.ts')).serveAsPrimary();
    case 'version':
    case '--version':
      console.log(version());
      return;
    case 'help':
    case '--help':
      console.log(HELP + (await import('./operator/index.ts')).commandHelp());
      return;
    default:
      process.exitCode = await operate(command);
  }
}

async function operate(command: string): Promise<number> {
  const { commandHelp, isCommand, runCommand } = await import('./operator/index.ts');
  if (!isCommand(command)) {
    console.error(`unknown command ${JSON.stringify(command)}\n\n${HELP}${commandHelp()}`);
    return 2;
  }
  const [{ readSettings }, { migrations }] = await Promise.all([import('./settings.ts'), import('./migrations.ts')]);
  return runCommand(command, process.argv.slice(3), { config: readSettings, migrations, version: version() });
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
