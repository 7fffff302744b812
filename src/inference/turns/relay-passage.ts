/**
 * Passes a request on to an endpoint of the client's own format as its bytes with members replaced, and the answer likewise.
 */
import { type Body, COPIED_BODY_BYTES } from '../../base/body.ts';
import { byteTextOf, joinedByteText, parseByteText, type TextEncoding } from '../../base/byte-text.ts';
import { type JsonDocument, parseJson } from '../../base/json.ts';
import { applyEdits, type Edit, editedPieces } from '../../base/json-edits.ts';
import { type CallIds, distinctDecoder, distinctTurn } from '../../formats/adapters/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type {
  Dialect,
  EncodeTarget,
  ServedFormat,
  SpokenFormat,
  Stamp,
  TurnDecoder,
} from '../../formats/conversation/format.ts';
import { Losses } from '../../formats/conversation/losses.ts';
import { type Passage, readTurn, type StreamWriter, type WholeReply } from './passage.ts';
import { ByteRelayStream, closingInBytes, stampInBytes } from './relay-bytes.ts';

export class RelayPassage implements Passage {
  readonly relayed = true;
  readonly encoding: TextEncoding;
  readonly body: Body;
  readonly losses = new Losses();
  readonly #format: ServedFormat;
  readonly #spoken: SpokenFormat;
  readonly #dialect: Dialect;
  readonly #ids: CallIds;

  // biome-ignore lint/complexity/useMaxParams: one call per attempt, with no object in between.
  constructor(
    format: ServedFormat,
    spoken: SpokenFormat,
    document: JsonDocument,
    target: EncodeTarget,
    ids: CallIds,
    unread: boolean,
  ) {
    this.encoding = unread ? 'latin1' : 'utf8';
    this.#format = format;
    this.#ids = ids;
    this.#spoken = spoken;
    this.#dialect = target.dialect;
    const edits = withTier(format, format.relay.edits(document, target, this.losses), document, target);
    this.body = document.bytes.length > COPIED_BODY_BYTES ? editedPieces(document, edits) : applyEdits(document, edits);
  }

  decoder(seed: string): TurnDecoder {
    return distinctDecoder(this.#spoken.decoder(this.#dialect, seed), this.#ids);
  }

  writer(stamp: Stamp): StreamWriter {
    const { relay } = this.#format;
    if (this.encoding === 'utf8') return relay.stream(stamp, this.#dialect);
    return new ByteRelayStream(relay.stream(stampInBytes(stamp), this.#dialect));
  }

  readWhole(body: Buffer, seed: string, encoding: TextEncoding): WholeReply | { failure: UpstreamFailure } {
    const asBytes = encoding === 'latin1';
    const text = asBytes ? byteTextOf(body) : body.toString('utf8');
    const read = readTurn(text, this.#spoken, this.#dialect, seed, asBytes ? parseByteText : parseJson);
    // Failures are read by the gateway itself.
    if ('failure' in read) return asBytes ? this.readWhole(body, seed, 'utf8') : read;
    const { value } = read;
    const turn = distinctTurn(read.turn, this.#ids);
    const { relay } = this.#format;
    const write: WholeReply['write'] = asBytes
      ? (stamp, closing) => {
          const reply = { text, value, turn, stamp: stampInBytes(stamp), closing: closingInBytes(closing) };
          return joinedByteText(relay.reply(reply));
        }
      : (stamp, closing) => relay.reply({ text, value, turn, stamp, closing });
    return { turn, write };
  }
}

/** Replaces the client's tier by the endpoint's. A format's own member for a tier is passed to the upstream. */
function withTier(
  { relay: { tierWord, tierMember = TIER_MEMBER } }: ServedFormat,
  edits: Edit[],
  { structure }: JsonDocument,
  { serviceTier }: EncodeTarget,
): Edit[] {
  if (serviceTier === undefined) return edits;
  const worded = tierWord !== undefined && structure[tierWord.key] === tierWord.value;
  if (worded && serviceTier !== null && !(tierMember in structure)) return edits;
  const list = edits.filter(({ key }) => key !== tierMember);
  if (worded) list.push({ key: tierWord.key, json: undefined });
  if (serviceTier !== null) list.push({ key: tierMember, json: JSON.stringify(serviceTier) });
  else if (tierMember in structure) list.push({ key: tierMember, json: undefined });
  return list;
}

/** The usual name of the member. */
const TIER_MEMBER = 'service_tier';
