/** A member of a destination's config, as openapi.json describes it. */
interface ConfigMember {
  type: string;
  /** `password`: a secret; `uri`: an address. */
  format?: string;
  enum?: string[];
  default?: string;
  description?: string;
}

/** The config of each type of destination, from the schema `DestinationConfig` of openapi.json (`build/console.ts`). */
declare const DESTINATION_TYPES: Readonly<
  Record<string, { description: string; properties: Readonly<Record<string, ConfigMember>>; required: string[] }>
>;
