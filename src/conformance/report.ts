/** The result as a table in Markdown and as JSON. */
import { FORMAT_NAMES } from './formats/dialogue.ts';
import type { Cell, Row } from './run.ts';

const MARKS: Readonly<Record<Cell['verdict'], string>> = {
  kept: 'yes',
  lost: '**no**',
  refused: 'refused',
  absent: 'absent',
  outside: '–',
  unserved: 'x',
};
const INITIALS = { chat: 'c', messages: 'm', responses: 'r' } as const;

interface Counts {
  kept: number;
  lost: number;
  refused: number;
  absent: number;
  unserved: number;
}

export function countsOf(rows: readonly Row[]): Counts {
  const counts = { kept: 0, lost: 0, refused: 0, absent: 0, unserved: 0 };
  for (const { verdict } of rows.flatMap(({ cells }) => cells)) {
    if (verdict !== 'outside') counts[verdict] += 1;
  }
  return counts;
}

export function jsonOf(gateway: string, rows: readonly Row[]): string {
  return JSON.stringify({ gateway, counts: countsOf(rows), rows }, null, 2);
}

/** A table for each group, then what was lost, and the counts. */
export function markdownOf(rows: readonly Row[]): string {
  const groups = [...new Set(rows.map(({ group }) => group))];
  const tables = groups.map((group) =>
    table(
      group,
      rows.filter((row) => row.group === group),
    ),
  );
  const sum = Object.entries(countsOf(rows)).map(([verdict, count]) => `${count} ${verdict}`);
  return [...tables, unservedPairs(rows), details(rows), sum.join(', ')].filter(Boolean).join('\n\n');
}

function table(group: string, rows: readonly Row[]): string {
  const heads = (rows[0]?.cells ?? []).map(({ client, upstream }) =>
    upstream === undefined ? client : `${INITIALS[client]}→${INITIALS[upstream]}`,
  );
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line([group, ...heads]),
    line(['---', ...heads.map(() => '---')]),
    ...rows.map(({ feature, cells }) => line([feature, ...cells.map(({ verdict }) => MARKS[verdict])])),
  ].join('\n');
}

/** Once for each pair, since all its cells say the same. */
function unservedPairs(rows: readonly Row[]): string {
  const cells = rows.flatMap((row) => row.cells).filter(({ verdict, upstream }) => verdict === 'unserved' && upstream);
  const lines = cells.map((cell) => `- ${placeText(cell)} is not served: ${cell.detail}`);
  return [...new Set(lines)].join('\n');
}

function details(rows: readonly Row[]): string {
  const found = rows.flatMap(({ feature, cells }) => {
    // The places of one finding are listed together.
    const places = Map.groupBy(
      cells.filter(({ verdict, detail }) => verdict !== 'unserved' && detail !== undefined),
      ({ detail }) => detail,
    );
    return [...places].map(([detail, all]) => {
      const names = all.length === FORMAT_NAMES.length ** 2 ? 'all' : all.map(placeText).join(', ');
      return `- ${feature} (${names}): ${detail}`;
    });
  });
  return found.join('\n');
}

function placeText({ client, upstream }: Cell): string {
  return upstream === undefined ? client : `${INITIALS[client]}→${INITIALS[upstream]}`;
}
