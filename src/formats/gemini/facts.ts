/** Reads the facts that the gateway needs of a client's request. */
import {
  addImage,
  addKind,
  type Contents,
  factMembers,
  imagesFound,
  modelsOf,
  noContents,
} from '../conversation/fact-members.ts';
import {
  type Fields,
  fieldsOf,
  fieldsOrUndefined,
  isFields,
  listOf,
  nonEmptyText,
  textOf,
} from '../conversation/fields.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { tierOf } from './decode.ts';
import { partsOf } from './decode-contents.ts';
import { member } from './names.ts';
import { needsOf } from './needs.ts';

export function facts(body: unknown): RequestFacts {
  const request = fieldsOf(body);
  const config = fieldsOf(member(request, 'generationConfig'));
  const choices = member(config, 'candidateCount');
  const result = factMembers(request, {
    ...modelsOf(nonEmptyText(request['model']), request['models']),
    choices: typeof choices === 'number' ? choices : 1,
    maxOutputTokens: member(config, 'maxOutputTokens'),
    user: nonEmptyText(request['user']),
    serviceTier: tierOf(request),
    contents: countMedia(request),
    needs: (inputs, everyParameter) => needsOf(request, inputs, everyParameter),
  });
  const metadata = fieldsOrUndefined(request['metadata']);
  if (metadata !== undefined) result.metadata = metadata as Record<string, string>;
  return result;
}

/** The parts that hold images. */
export function images(body: unknown): ReadonlySet<unknown> {
  return imagesFound((media) => void countMedia(body, media));
}

function countMedia(body: unknown, media = noContents()): Contents {
  for (const part of listOf(fieldsOf(body)['contents']).flatMap(partsOf)) {
    countPart(part, media);
    for (const inner of listOf(fieldsOf(member(part, 'functionResponse'))['parts'])) countPart(fieldsOf(inner), media);
  }
  return media;
}

function countPart(part: Fields, media: Contents): void {
  const medium = member(part, 'inlineData') ?? member(part, 'fileData');
  if (!isFields(medium)) return;
  const [kind] = textOf(member(medium, 'mimeType')).toLowerCase().split('/', 1);
  if (kind === 'image') {
    addImage(media, part);
    return;
  }
  media.documents += 1;
  addKind(media, kind === 'audio' || kind === 'video' ? kind : kind === '' ? 'video' : 'file');
}
