/** One result of the doctor. */
export interface Finding {
  /** `ok`; `note`: works, and is worth knowing; `fault`: the gateway will not start, or will not do what it is meant to. */
  level: 'ok' | 'note' | 'fault';
  area:
    | 'configuration'
    | 'machine'
    | 'data folder'
    | 'database'
    | 'credentials'
    | 'keys'
    | 'budgets'
    | 'files'
    | 'provider'
    | 'egress proxy'
    | 'module'
    | 'sandboxes'
    | 'network';
  message: string;
  /** What to do about it. */
  advice?: string;
}

export function ok(area: Finding['area'], message: string): Finding {
  return { level: 'ok', area, message };
}

export function note(area: Finding['area'], message: string, advice?: string): Finding {
  return { level: 'note', area, message, ...(advice !== undefined && { advice }) };
}

export function fault(area: Finding['area'], message: string, advice?: string): Finding {
  return { level: 'fault', area, message, ...(advice !== undefined && { advice }) };
}
