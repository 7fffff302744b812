/** The models as an RSS 2.0 feed (`use_rss`), newest first. Pure. */
import type { Row } from './query.ts';

const MOST_ITEMS = 100;

/** @param origin `https://host` of the request, for the links */
export function feedOf(rows: readonly Row[], origin: string): string {
  const items = rows.slice(0, MOST_ITEMS).map(({ id, model }) => {
    const created = model.facts?.created;
    return [
      '<item>',
      `<title>${escaped(model.name)}</title>`,
      `<link>${escaped(`${origin}/api/v1/models/${id}/endpoints`)}</link>`,
      `<guid isPermaLink="false">${escaped(id)}</guid>`,
      ...(created ? [`<pubDate>${new Date(created * 1000).toUTCString()}</pubDate>`] : []),
      '</item>',
    ].join('');
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<rss version="2.0"><channel>',
    `<title>Models</title><link>${escaped(origin)}/api/v1/models</link><description>Models of this gateway</description>`,
    ...items,
    '</channel></rss>',
  ].join('\n');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
