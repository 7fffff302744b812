/** The command line: `gatehouse serve` (the default), operator commands (`operator/`), version and help. */
import cluster from 'node:cluster';
import { enableCompileCache } from 'node:module';
import path from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { ConfigError } from './base/config/problems.ts';
import { StartError } from './server/start-error.ts';

// Node.js caches compiled code next to a bundle, which halves the time of the next start; if that folder cannot be
// written, nothing is cached. Everything else must be imported after this.
if (import.meta.filename.endsWith('.js')) enableCompileCache(path.join(import.meta.dirname, 'compiled'));

const HELP = `gatehouse: a gateway in front of every model provider

  gatehouse [serve]    start it; settings are environment variables and gatehouse.yaml (docs/reference)
  gatehouse version    print the version
  gatehouse help       print this

  Every command takes --help.
`;

async function main(command: string): Promise<void> {
  if (cluster.isWorker) return (await import('./server/worker.ts')).serveAsWorker();
  const args = process.argv.slice(3);
  const own = command === 'serve' || ['version', '--version', '-v'].includes(command);
  if (command === 'help' || isHelp(command) || (own && args.some(isHelp))) {
    console.log(HELP + (await import('./operator/index.ts')).commandHelp());
  } else if (!own) {
    process.exitCode = await operate(command);
  } else if (args.length > 0) {
    console.error(
      `${command} takes no arguments, but got ${JSON.stringify(args[0])}; gatehouse help prints what there is`,
    );
    process.exitCode = 2;
  } else if (command === 'serve') {
    await (await import('./server/primary.ts')).serveAsPrimary();
  } else {
    console.log(manifest.version);
  }
}

function isHelp(argument: string): boolean {
  return argument === '--help' || argument === '-h';
}

async function operate(command: string): Promise<number> {
  const { commandHelp, isCommand, runCommand } = await import('./operator/index.ts');
  if (!isCommand(command)) {
    console.error(`unknown command ${JSON.stringify(command)}\n\n${HELP}${commandHelp()}`);
    return 2;
  }
  const [{ readConfig }, { migrations }, { sealedRows }] = await Promise.all([
    import('./server/load-config.ts'),
    import('./migrations.ts'),
    import('./sealed-rows.ts'),
  ]);
  const machine = { config: readConfig, migrations, sealedRows, version: manifest.version };
  return runCommand(command, process.argv.slice(3), machine);
}

main(process.argv[2] ?? 'serve').catch((error: unknown) => {
  // Problems that an operator can fix are shown as a message; anything else is a bug and shows its stack.
  console.error(error instanceof ConfigError || error instanceof StartError ? error.message : error);
  process.exit(1);
});
