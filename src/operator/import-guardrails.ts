/** `gatehouse import litellm-guardrails`: the guardrails of LiteLLM's configuration, into the database. */
import { defaultWorkspaceId, organizationId } from '../access/index.ts';
import { changeAs, operatorAuthor } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { addDefaultFilters, checkPatterns, type FilterDirection, importFilters } from '../guardrails/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { counted, type Finding, type Findings } from './import/findings.ts';
import { type GuardrailDraft, type PatternDraft, readGuardrails } from './import/guardrails.ts';
import { readAs } from './import/read-file.ts';
import { withDatabase } from './installation.ts';

/** @param list prints findings under a title */
export async function importGuardrailsCommand(
  args: readonly string[],
  parts: CommandParts,
  list: (title: string, findings: readonly Finding[]) => void,
): Promise<number> {
  const { positionals } = parseArguments(args, {}, true);
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new UsageError('name one configuration file');
  const { guardrails, findings } = readAs(file, readGuardrails);
  const drafts = await acceptedOf(guardrails, findings);
  for (const { path, isDefault } of drafts) findings.differs(path, isDefault ? EVERYWHERE : NOWHERE);
  const done = await write(drafts, parts);
  findings.sorted();
  parts.out.print(
    `imported: ${counted(done.created, 'guardrail')}, and filters of ${counted(done.added, 'default guardrail')}`,
  );
  if (drafts.some(({ isDefault }) => isDefault)) parts.out.print(LATER);
  if (done.known > 0) parts.out.print(`here already and unchanged: ${counted(done.known, 'guardrail')}`);
  list('works differently:', findings.different);
  list('not imported:', findings.missing);
  return 0;
}

const EVERYWHERE =
  'is part of the default guardrail of every workspace that exists now; of two actions for one filter the stricter applies';
/** A guardrail belongs to one workspace; none applies to a whole organization. */
const LATER =
  'not protected: workspaces that are created later. Run this command again after creating one; it adds what is missing';
const NOWHERE =
  'applies to nothing until it is assigned: POST /guardrails/{id}/assignments/keys; requests cannot name guardrails';

/** Without patterns that the gateway's engine cannot match. */
function acceptedOf(drafts: readonly GuardrailDraft[], findings: Findings): Promise<GuardrailDraft[]> {
  return Promise.all(
    drafts.map(async (draft) => {
      const patterns: PatternDraft[] = [];
      for (const pattern of draft.patterns) {
        const accepted: FilterDirection[] = [];
        for (const direction of pattern.appliesTo) {
          const problem = await problemOf(pattern, direction);
          if (problem === undefined) accepted.push(direction);
          else findings.lacks(pattern.path, `is not imported for each ${direction}: ${problem}`);
        }
        if (accepted.length > 0) patterns.push({ ...pattern, appliesTo: accepted });
      }
      return { ...draft, patterns };
    }),
  ).then((checked) => checked.filter(({ builtins, patterns }) => builtins.length + patterns.length > 0));
}

/** Without the pattern. */
async function problemOf(pattern: PatternDraft, direction: FilterDirection): Promise<string | undefined> {
  try {
    await checkPatterns('pattern', [{ ...pattern, appliesTo: [direction] }]);
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error.message.replace(/^.*invalid_regex_pattern: /, '');
  }
}

/** All or nothing. */
function write(drafts: readonly GuardrailDraft[], parts: CommandParts) {
  const now = new Date(parts.clock.now());
  return withDatabase(parts, async (opened) => {
    const organization = await organizationId(opened.database);
    if (organization === undefined) throw new Error('there is no organization yet; start the gateway once');
    const author = operatorAuthor(organization, now.getTime());
    return changeAs(author, opened, async (tx, changed) => {
      const workspaceId = await defaultWorkspaceId(tx, organization);
      if (workspaceId === undefined) throw new Error('the default workspace was deleted');
      const place = { organizationId: organization, workspaceId, now };
      const done = { created: 0, known: 0, added: 0 };
      for (const { name, builtins, patterns } of drafts.filter(({ isDefault }) => !isDefault)) {
        const isNew = await importFilters(tx, changed, place, { name, builtins, patterns: patterns.map(storedOf) });
        done[isNew ? 'created' : 'known'] += 1;
      }
      const general = drafts.filter(({ isDefault }) => isDefault);
      const filters = {
        builtins: general.flatMap(({ builtins }) => builtins),
        patterns: general.flatMap(({ patterns }) => patterns.map(storedOf)),
      };
      if (general.length > 0) done.added = await addDefaultFilters(tx, changed, place, filters);
      return done;
    });
  });
}

function storedOf({ path: _, ...pattern }: PatternDraft) {
  return pattern;
}
