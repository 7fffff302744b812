/** The contract of router models: models that choose another model for each request. */
import type { Fields } from '../../../formats/conversation/fields.ts';
import type { Offer } from '../../routing/router-models.ts';

/** The model's configured score from 0 to 1; undefined if there is none. */
export type ModelScore = (modelId: string, kind: 'quality' | 'coding') => number | undefined;

export interface RouterQuestion {
  readonly offers: readonly Offer[];
  /** The settings of its plugin; empty if the request does not name it. */
  readonly settings: Fields;
  readonly score: ModelScore;
  /** The request has tools, media or a wanted output format. */
  readonly demanding: boolean;
  /** The last message of the history is the result of a tool call. */
  readonly continuesStep: boolean;
  /** The model that answered last in this conversation, if the client named it. */
  readonly previousModel: string | undefined;
  /** Like `Math.random`. */
  random(): number;
}

interface RouterChoice {
  /** In the order in which they are tried; empty if no offer fits the settings. */
  readonly offers: readonly Offer[];
  /** No offer is needed: the request's other models follow. */
  readonly passes?: boolean;
  /** Why, for the routing metadata. */
  readonly reason: string;
}

export interface Router {
  /** `svc/...` */
  readonly slug: string;
  readonly name: string;
  /** Id of the plugin with its settings; absent: it has none. */
  readonly plugin?: string;
  /** As in the routing metadata. */
  readonly strategy: 'auto' | 'pareto' | 'free' | 'fusion';
  choose(question: RouterQuestion): RouterChoice;
}
