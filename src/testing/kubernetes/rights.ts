/** Role-based access: what the roles of the manifests allow. Everything else is refused. */

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export interface Asked {
  verb: string;
  group: string;
  /** With a slash before a subresource. */
  resource: string;
}

export class Rights {
  readonly #rules: readonly Rule[];
  /** Of the rights that were given, those that were used. */
  readonly used = new Set<string>();

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /** Every single right. */
  get all(): string[] {
    return this.#rules.flatMap(({ apiGroups, resources, verbs }) => {
      return apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => key({ verb, group, resource }))),
      );
    });
  }

  allows(asked: Asked): boolean {
    return this.all.includes(key(asked));
  }

  use(asked: Asked): boolean {
    if (!this.allows(asked)) return false;
    this.used.add(key(asked));
    return true;
  }
}

function key({ verb, group, resource }: Asked): string {
  return `${verb} ${group}/${resource}`;
}
