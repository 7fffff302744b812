const LONGEST = 64;

/**
 * The known word that a wrong one most likely meant, or undefined when none is near: the same letters with other case or
 * separators (`maxConcurrency`), or an edit distance of 2 and at most a third of the length.
 */
export function nearest(wrong: string, known: Iterable<string>): string | undefined {
  if (wrong.length > LONGEST) return undefined;
  let best: string | undefined;
  const letters = lettersOf(wrong);
  let bestDistance = Math.min(2, Math.floor(wrong.length / 3)) + 1;
  for (const word of known) {
    if (letters !== '' && lettersOf(word) === letters) return word;
    if (Math.abs(word.length - wrong.length) >= bestDistance) continue;
    const distance = editDistance(wrong.toLowerCase(), word.toLowerCase());
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}

function lettersOf(word: string): string {
  return word.replace(/[\s_.-]/g, '').toLowerCase();
}

/** Levenshtein distance in which a swap of two neighbours counts as one. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        cost = Math.min(cost, rows[i - 2]![j - 2]! + 1);
      }
      row.push(cost);
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
}
