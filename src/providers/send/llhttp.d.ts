/** The parser of node itself as WebAssembly: undici has it built, and keeps it up to date with node's. */
declare module 'undici/lib/llhttp/llhttp-wasm.js' {
  const binary: Buffer;
  export = binary;
}

/** What is used of it: node's declarations have it as types only. */
declare namespace WebAssembly {
  class Module {
    constructor(binary: Uint8Array);
  }
  class Instance {
    readonly exports: Record<string, unknown>;
    constructor(module: Module, imports: Record<string, Record<string, (...values: number[]) => number>>);
  }
}
