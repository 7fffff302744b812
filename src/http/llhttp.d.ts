/** Node's HTTP parser as WebAssembly; undici ships it and keeps it in sync with Node. */
declare module 'undici/lib/llhttp/llhttp-wasm.js' {
  const binary: Buffer;
  export = binary;
}

/** The members used here: Node's declarations have them as types only. */
declare namespace WebAssembly {
  class Module {
    constructor(binary: Uint8Array);
  }
  class Instance {
    readonly exports: Record<string, unknown>;
    constructor(module: Module, imports: Record<string, Record<string, (...values: number[]) => number>>);
  }
}
